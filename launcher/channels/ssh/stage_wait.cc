#include "launcher/channels/ssh/stage_wait.h"

namespace hvd {

void StageWait::Enter(ChannelStage stage) {
  if (aborted_) return;
  stage_ = stage;
  Restart();
  hooks_.entered(stage);
}

TimePoint StageWait::In(Duration limit) const {
  return limit == Duration::max() ? TimePoint::max() : Now() + limit;
}

bool StageWait::Fail(std::string reason) {
  if (!std::exchange(failed_, true) && !aborted_) reason_ = std::move(reason);
  return false;
}

void StageWait::Abort(std::string reason) {
  if (std::exchange(aborted_, true)) return;
  if (!failed_) reason_ = std::move(reason);
  Wake();
}

asio::awaitable<void> StageWait::Pause(Duration duration) {
  co_await WaitFor([] { return false; }, In(duration));
}

asio::awaitable<void> StageWait::Sleep(TimePoint until) {
  wake_.expires_at(until);
  asio::error_code ignored;
  co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace hvd
