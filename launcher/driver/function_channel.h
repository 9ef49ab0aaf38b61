// FunctionChannel: hvdrun's end of a socket whose other end is a process in horovod.run()
// (runtime/python/horovod/runner). The function of the ranks comes from there, once; results go
// there, in the pieces in which the ranks' agents send them.
//
//   to hvdrun    u64 length, the function
//   from hvdrun  u32 worker, u32 rank, u32 length, a piece of what the worker wrote
//
// Numbers are little-endian. hvdrun does not interpret the bytes.
#ifndef HVD_LAUNCHER_DRIVER_FUNCTION_CHANNEL_H_
#define HVD_LAUNCHER_DRIVER_FUNCTION_CHANNEL_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "launcher/output/output.h"
#include "runtime/base/status.h"

namespace hvd {

// Maximum size of a function, which is sent to each host in one message.
inline constexpr uint64_t kMostFunctionBytes = 48 * 1024 * 1024;

// Reads the function, before anything else is read. kAborted: the caller is gone.
// kInvalidArgument: `fd` is no connected socket, or what comes is no function.
Result<std::string> ReadFunction(int fd);

// The head of a piece of a result. Pure.
std::string FunctionPieceHead(uint32_t worker, uint32_t rank, uint32_t length);

// One thread, that of the io_context.
class FunctionChannel {
 public:
  // Takes the socket. `on_passed` gets the number of bytes of output that were sent to the caller,
  // by host; `on_caller_gone` is called when the process in horovod.run() has ended.
  FunctionChannel(asio::io_context& io, int fd,
                  std::function<void(uint32_t host, uint64_t bytes)> on_passed,
                  std::function<void()> on_caller_gone);

  // A piece of what a worker wrote; `receipt` has its host and the size of its message.
  void Pass(OutputReceipt receipt, uint32_t worker, uint32_t rank, std::string_view bytes);
  // Blocks until the caller has received everything, has gone, or `limit` has passed. Last call.
  void Finish(std::chrono::milliseconds limit);

 private:
  void WatchCaller();

  asio::io_context& io_;
  asio::posix::stream_descriptor socket_;
  const std::function<void(uint32_t, uint64_t)> on_passed_;
  const std::function<void()> on_caller_gone_;
  OutputWriter writer_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_FUNCTION_CHANNEL_H_
