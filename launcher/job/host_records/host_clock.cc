#include "launcher/job/host_records/host_clock.h"

#include <algorithm>

namespace hvd {
namespace {

// Two clocks drift apart by less than 1 part in 2000, even while NTP corrects one of them.
constexpr int64_t kDriftParts = 2000;
// Answers closer together than this say little about the rate.
constexpr Duration kRateSpan = std::chrono::seconds(1);
constexpr size_t kMostReadings = 8;
// Centuries. Times from other hosts are clamped to this, so that no sum overflows.
constexpr int64_t kMostStamp = int64_t{1} << 61;
// The first answers arrive while the host is busy starting the job.
constexpr uint32_t kFirstQuestions = 4;
constexpr Duration kAskEvery = std::chrono::seconds(2);

int64_t Plausible(int64_t stamp_ns) { return std::clamp<int64_t>(stamp_ns, 0, kMostStamp); }

Duration Half(const ClockReading& reading) { return (reading.answered - reading.asked) / 2; }
TimePoint Middle(const ClockReading& reading) { return reading.asked + Half(reading); }

}  // namespace

HostClock HostClock::Ours() {
  HostClock clock;
  clock.ours_ = true;
  return clock;
}

HostClock::Moment HostClock::ConvertBy(const ClockReading& reading, int64_t stamp_ns) const {
  const Duration since(Plausible(stamp_ns) -
                       Plausible(reading.host_ns));  // negative: it happened before
  const Duration gained(static_cast<int64_t>(static_cast<double>(since.count()) * rate_));
  // The rate may change at any time, so it does not reduce the uncertainty.
  return {Middle(reading) + since - gained, Half(reading) + std::chrono::abs(since) / kDriftParts};
}

// From the two readings that give the rate with the least uncertainty.
void HostClock::MeasureRate() {
  constexpr double kMost = 1.0 / kDriftParts;
  double least = kMost;
  rate_ = 0;
  for (size_t i = 0; i < readings_.size(); ++i) {
    for (size_t j = i + 1; j < readings_.size(); ++j) {
      const Duration span = Middle(readings_[j]) - Middle(readings_[i]);
      if (span < kRateSpan) continue;
      const auto ours = static_cast<double>(span.count());
      const double uncertainty =
          static_cast<double>((Half(readings_[i]) + Half(readings_[j])).count()) / ours;
      if (uncertainty >= least) continue;
      least = uncertainty;
      const auto theirs =
          static_cast<double>(Plausible(readings_[j].host_ns) - Plausible(readings_[i].host_ns));
      rate_ = std::clamp(theirs / ours - 1, -kMost, kMost);
    }
  }
}

void HostClock::Add(const ClockReading& reading) {
  if (ours_ || reading.answered < reading.asked) return;
  if (const std::optional<Moment> before = Convert(reading.host_ns)) {
    const bool too_early = before->at + before->uncertainty < reading.asked;
    const bool too_late = before->at - before->uncertainty > reading.answered;
    if (too_early || too_late) readings_.clear();
  }
  if (readings_.size() == kMostReadings) readings_.erase(readings_.begin());
  readings_.push_back(reading);
  MeasureRate();
}

std::optional<HostClock::Moment> HostClock::Convert(int64_t stamp_ns) const {
  if (ours_) return Moment{TimePoint(Duration(stamp_ns)), Duration::zero()};
  std::optional<Moment> best;
  for (const ClockReading& reading : readings_) {
    const Moment moment = ConvertBy(reading, stamp_ns);
    if (!best || moment.uncertainty < best->uncertainty) best = moment;
  }
  return best;
}

std::optional<AskTime> ClockSchedule::Next(uint32_t host, TimePoint now) {
  Host& h = hosts_[host];
  if (!h.there || h.asked != h.answered) return std::nullopt;
  if (h.asked >= kFirstQuestions && now < h.asked_at + kAskEvery) return std::nullopt;
  h.asked_at = now;
  return AskTime{++h.asked};
}

std::optional<ClockReading> ClockSchedule::HandleReply(uint32_t host, const TimeReply& reply,
                                                       TimePoint now) {
  Host& h = hosts_[host];
  if (h.asked == h.answered || reply.number != h.asked) return std::nullopt;
  h.answered = h.asked;
  return ClockReading{h.asked_at, now, reply.steady_ns};
}

}  // namespace hvd
