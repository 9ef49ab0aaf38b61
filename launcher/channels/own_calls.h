// OwnCalls: what an object does later, in its own thread. None of it happens once the object is
// gone.
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

  // In a later turn of the loop.
  template <typename Then>
  void Post(Then then) {
    asio::post(io_, [then, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) then();
    });
  }
  // One at a time: another call of After, or Cancel, drops the one that waits.
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
