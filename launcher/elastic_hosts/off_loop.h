// OffLoop: runs a call that may block (a name lookup, a network file system) in its own thread, so
// that the loop continues.
//
// One thread, that of the io_context; only `question` runs elsewhere.
#ifndef HVD_LAUNCHER_ELASTIC_HOSTS_OFF_LOOP_H_
#define HVD_LAUNCHER_ELASTIC_HOSTS_OFF_LOOP_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>

namespace hvd {

class OffLoop {
 public:
  explicit OffLoop(asio::io_context& io) : answered_(io) {}
  // Does not wait for a running question, which must own what it uses.
  ~OffLoop() { Forget(); }

  // One question at a time. `then` is called by the io_context after the question has returned,
  // unless Forget() was called first.
  void Ask(std::function<void()> question, std::function<void()> then);
  void Forget();

 private:
  asio::posix::stream_descriptor answered_;
  std::shared_ptr<std::function<void()>> then_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_ELASTIC_HOSTS_OFF_LOOP_H_
