// StageWait: the stage of a coroutine that opens a channel, and its only means to wait. Event
// handlers set a variable and call Wake; the coroutine continues when its condition is true, its
// stage has timed out, or it was aborted.
//
// Main thread only.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_STAGE_WAIT_H_
#define HVD_LAUNCHER_CHANNELS_SSH_STAGE_WAIT_H_

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <functional>
#include <string>
#include <utility>

#include "launcher/channels/host_channel.h"
#include "runtime/base/clock.h"

namespace hvd {

class StageWait {
 public:
  struct Hooks {
    std::function<void(ChannelStage)> entered;
    // The reason for a timeout in this stage.
    std::function<std::string(ChannelStage)> too_long;
  };

  // `limit`: of each stage; Duration::max(): none. `clock` outlives this object.
  StageWait(asio::io_context& io, const Clock& clock, Duration limit, Hooks hooks)
      : clock_(clock), limit_(limit), hooks_(std::move(hooks)), wake_(io) {}

  ChannelStage stage() const { return stage_; }
  // Enters the stage and restarts its timer.
  void Enter(ChannelStage stage);
  // Changes the reported stage; the timer keeps running.
  void Rename(ChannelStage stage) { stage_ = stage; }
  // Restarts the stage's timer.
  void Restart() { end_ = In(limit_); }
  void EndAt(TimePoint end) { end_ = end; }
  TimePoint end() const { return end_; }
  // `limit` from now; Duration::max(): never.
  TimePoint In(Duration limit) const;
  TimePoint Now() const { return clock_.Now(); }

  void Wake() { wake_.cancel(); }
  // Sets the reason unless one is set. Returns false.
  bool Fail(std::string reason);
  // Ends all current and later waits.
  void Abort(std::string reason);
  // An earlier Abort no longer ends waits.
  void ForgetAbort() { aborted_ = false; }
  bool aborted() const { return aborted_; }
  bool failed() const { return failed_; }
  const std::string& reason() const { return reason_; }
  void set_reason(std::string reason) { reason_ = std::move(reason); }

  // Whether the condition became true before `until`; a timeout sets no reason.
  template <typename Condition>
  asio::awaitable<bool> WaitFor(Condition condition, TimePoint until) {
    while (!aborted_ && !condition()) {
      if (Now() >= until) co_return false;
      co_await Sleep(until);
    }
    co_return !aborted_;
  }
  // Whether the condition became true within the stage's time; if not, the reason is set.
  template <typename Condition>
  asio::awaitable<bool> Until(Condition condition) {
    while (!aborted_ && !condition()) {
      if (Now() >= end_) co_return Fail(hooks_.too_long(stage_));
      co_await Sleep(end_);
    }
    co_return !aborted_;
  }
  asio::awaitable<void> Pause(Duration duration);

 private:
  asio::awaitable<void> Sleep(TimePoint until);

  const Clock& clock_;
  const Duration limit_;
  const Hooks hooks_;
  asio::steady_timer wake_;
  ChannelStage stage_ = ChannelStage::kResolve;
  TimePoint end_ = TimePoint::max();  // of the stage
  bool aborted_ = false, failed_ = false;
  std::string reason_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_STAGE_WAIT_H_
