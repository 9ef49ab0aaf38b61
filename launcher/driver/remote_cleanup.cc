#include "launcher/driver/remote_cleanup.h"

#include <utility>

#include "launcher/text/seconds_text.h"

namespace hvd {

RemoteCleanup::RemoteCleanup(std::unique_ptr<HostChannel> channel, TimePoint now,
                             std::function<void()> on_over)
    : channel_(std::move(channel)),
      began_(now),
      due_(now + kReachLimit),
      on_over_(std::move(on_over)) {}

void RemoteCleanup::Tick(TimePoint now) {
  if (now < due()) return;
  cut_ = true;
  reason_ = "no answer within " + SecondsText(due_ - began_);
  channel_->Kill();
}

void RemoteCleanup::OnStage(ChannelStage stage) {
  if (stage > ChannelStage::kConnect) due_ = began_ + kLimit;
}

void RemoteCleanup::OnEnd(const ChannelEnd& end) {
  over_ = true;
  if (!cut_) reason_ = end.reason;
  on_over_();
}

}  // namespace hvd
