#include "launcher/overlay/relay/relay_probe.h"

#include <algorithm>

#include "launcher/output/text/phrases.h"

namespace hvd {
namespace {

constexpr int kPings = 5;

}  // namespace

size_t RelayProbe::Next(TimePoint now) {
  size_t bytes = 0;
  if (pings_ < kPings) {
    if (in_flight_ > 0) return 0;
    ping_sent_ = now;
    bytes = 1;
  } else {
    // As much as came through already may be under way, so that a slow way is not filled for
    // seconds.
    const uint64_t room = std::clamp<uint64_t>(arrived_, kRelayPiece, kRelayWindow);
    if (enough(now) || in_flight_ + kRelayPiece > room) return 0;
    bytes = kRelayPiece;
    sent_ += bytes;
  }
  in_flight_ += bytes;
  return bytes;
}

void RelayProbe::Arrived(uint64_t bytes, TimePoint now) {
  in_flight_ -= std::min(bytes, in_flight_);
  if (pings_ < kPings) {
    latency_ = std::min(latency_.value_or(Duration::max()), now - ping_sent_);
    if (++pings_ == kPings) sending_since_ = now;
    return;
  }
  arrived_ += bytes;
  last_arrival_ = now;
}

bool RelayProbe::over(TimePoint now) const {
  if (now >= deadline()) return true;
  return pings_ == kPings && in_flight_ == 0 && enough(now);
}

RelayMeasured RelayProbe::result() const {
  RelayMeasured measured;
  measured.bytes = arrived_;
  measured.elapsed_ns = (last_arrival_ - sending_since_).count();
  measured.latency_ns = latency_.value_or(Duration::zero()).count();
  if (arrived_ == 0) {
    measured.trouble = "nothing came through it in " + SecondsText(kLimit);
  }
  return measured;
}

}  // namespace hvd
