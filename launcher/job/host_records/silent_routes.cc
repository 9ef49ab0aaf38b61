#include "launcher/job/host_records/silent_routes.h"

#include <algorithm>

namespace hvd {
namespace {

// How often to look at a route that is silent while hvdrun hears nothing from one of its hosts.
constexpr Duration kLookAgain = std::chrono::milliseconds(250);

}  // namespace

void SilentRoutes::Note(const RankSilent& silent, uint64_t generation, TimePoint now) {
  const std::pair route(silent.rank, silent.peer);
  if (silent.silent_ms == 0) {
    since_.erase(route);
  } else {
    since_[route] = {generation, now - std::chrono::milliseconds(silent.silent_ms)};
  }
}

std::optional<SilentRoute> SilentRoutes::Broken(
    TimePoint now, const std::function<bool(uint32_t rank)>& heard) const {
  std::optional<SilentRoute> worst;
  for (const auto& [route, since] : since_) {
    const auto [rank, peer] = route;
    const Duration silent = now - since.heard_last;
    if (silent < limit_ || (worst && worst->silent >= silent)) continue;
    if (heard(rank) && heard(peer)) worst = SilentRoute{rank, peer, since.generation, silent};
  }
  return worst;
}

TimePoint SilentRoutes::NextLook(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [route, since] : since_) next = std::min(next, since.heard_last + limit_);
  return next > now ? next : now + kLookAgain;
}

}  // namespace hvd
