#include "launcher/driver/remote_cleanup.h"

#include <algorithm>
#include <utility>

#include "launcher/output/text/phrases.h"

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

void RemoteCleanups::Start(std::unique_ptr<HostChannel> channel, TimePoint now,
                           std::function<void(const std::string& reason)> on_over) {
  const size_t number = cleanups_.size();
  cleanups_.push_back(std::make_unique<RemoteCleanup>(
      std::move(channel), now,
      [this, number, on_over = std::move(on_over)] { on_over(cleanups_[number]->reason()); }));
  cleanups_.back()->Open();
}

bool RemoteCleanups::all_over() const {
  return std::all_of(cleanups_.begin(), cleanups_.end(), [](const auto& c) { return c->over(); });
}

TimePoint RemoteCleanups::NextTick() const {
  TimePoint next = TimePoint::max();
  for (const auto& cleanup : cleanups_) next = std::min(next, cleanup->due());
  return next;
}

void RemoteCleanups::Tick(TimePoint now) {
  for (size_t i = 0; i < cleanups_.size(); ++i) cleanups_[i]->Tick(now);
}

}  // namespace hvd
