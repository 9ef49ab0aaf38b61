#include "launcher/job/policy/goodput.h"

#include <algorithm>

#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {

void Goodput::NoteStart(TimePoint now) {
  if (!began_) began_ = now;
}

void Goodput::SetTraining(bool training, TimePoint now) {
  if (training == training_since_.has_value()) return;
  if (!training) {
    TimePoint until = now;
    for (const auto& [host, since] : idle_since_) until = std::min(until, since);
    trained_ += std::max(until - *training_since_, Duration{});
  }
  idle_since_.clear();
  training_since_ = training ? std::optional(now) : std::nullopt;
}

void Goodput::SetIdle(uint32_t host, Duration idle, TimePoint now) {
  if (!training_since_ || idle == Duration{}) {
    idle_since_.erase(host);
  } else {
    idle_since_[host] = now - idle;
  }
}

void Goodput::NoteEnd(TimePoint now) {
  SetTraining(false, now);
  ended_ = now;
}

void Goodput::Shift(Duration away) {
  if (began_) *began_ += away;
  if (training_since_) *training_since_ += away;
  for (auto& [host, since] : idle_since_) since += away;
}

Duration Goodput::total() const {
  return began_ ? std::max(ended_ - *began_, Duration{}) : Duration{};
}

std::string Goodput::Text() const {
  const int64_t percent = total() > Duration{} ? 100 * trained_ / total() : 0;
  return Format("ranks were training for {} of {} ({} %)", SecondsText(trained_),
                SecondsText(total()), percent);
}

}  // namespace hvd
