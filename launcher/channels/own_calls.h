// OwnCalls: deferred calls of an object on its io_context. None runs after the object's
// destruction.
#ifndef HVD_LAUNCHER_CHANNELS_OWN_CALLS_H_
#define HVD_LAUNCHER_CHANNELS_OWN_CALLS_H_

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <memory>

#include "runtime/base/clock.h"

namespace hvd {

class OwnCalls {
 public:
  explicit OwnCalls(asio::io_context& io) : io_(io), limit_(io) {}

  // Runs `then` in a later iteration of the loop.
  template <typename Then>
  void Post(Then then) {
    asio::post(io_, [then, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) then();
    });
  }
  // Runs `then` after `time`. One at a time: another After, or Cancel, drops the pending one.
  template <typename Then>
  void After(Duration time, Then then) {
    limit_.expires_after(time);
    limit_.async_wait([then, alive = std::weak_ptr<int>(alive_)](const asio::error_code& error) {
      if (!error && !alive.expired()) then();
    });
  }
  void Cancel() { limit_.cancel(); }

 private:
  asio::io_context& io_;
  asio::steady_timer limit_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_OWN_CALLS_H_
