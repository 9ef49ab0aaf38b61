#include "launcher/silent_ways.h"

#include <algorithm>

namespace hvd {
namespace {

// While a way has been silent for too long and a host of it is not heard either.
constexpr Duration kLookAgain = std::chrono::milliseconds(250);

}  // namespace

void SilentWays::Note(const RankSilent& said, uint64_t epoch, TimePoint now) {
  const std::pair way(said.rank, said.peer);
  if (said.silent_ms == 0) {
    since_.erase(way);
  } else {
    since_[way] = {epoch, now - std::chrono::milliseconds(said.silent_ms)};
  }
}

std::optional<SilentWay> SilentWays::Broken(TimePoint now,
                                            const std::function<bool(uint32_t rank)>& heard) const {
  std::optional<SilentWay> worst;
  for (const auto& [way, since] : since_) {
    const auto [rank, peer] = way;
    const Duration silent = now - since.heard_last;
    if (silent < limit_ || (worst && worst->silent >= silent)) continue;
    if (heard(rank) && heard(peer)) worst = SilentWay{rank, peer, since.epoch, silent};
  }
  return worst;
}

TimePoint SilentWays::NextLook(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [way, since] : since_) next = std::min(next, since.heard_last + limit_);
  return next > now ? next : now + kLookAgain;
}

}  // namespace hvd
