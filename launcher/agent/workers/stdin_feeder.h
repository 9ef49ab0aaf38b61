// StdinFeeder: writes the stdin of hvdrun into pipes that are the stdin of workers. Never blocks:
// bytes that a pipe does not accept are buffered, at most as many as the driver sends before
// earlier ones are reported as taken. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_STDIN_FEEDER_H_
#define HVD_LAUNCHER_AGENT_WORKERS_STDIN_FEEDER_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace hvd {

class StdinFeeder {
 public:
  // `on_taken` gets how many more bytes the slowest pipe has taken.
  StdinFeeder(asio::io_context& io, std::function<void(uint64_t)> on_taken)
      : io_(io), on_taken_(std::move(on_taken)) {}

  // Makes a pipe for one more worker and returns the end that the worker reads from. Invalid when
  // no pipe can be made (errno).
  UniqueFd AddPipe();
  // Into every pipe; empty: the end of all of them.
  void Feed(std::string_view bytes);

 private:
  struct Pipe {
    explicit Pipe(asio::io_context& io) : end(io) {}
    asio::posix::stream_descriptor end;
    std::string pending;
    bool waiting = false;
  };

  void Push(const std::shared_ptr<Pipe>& pipe);
  void ReportTaken();

  asio::io_context& io_;
  std::function<void(uint64_t)> on_taken_;
  std::vector<std::shared_ptr<Pipe>> pipes_;
  uint64_t fed_ = 0, told_ = 0;
  bool ended_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_STDIN_FEEDER_H_
