#include "launcher/driver/services/rank_troubles.h"

#include <variant>

namespace hvd {

std::optional<JobEvent> RankTroubles::Handle(const Plan& plan, uint32_t host, uint64_t generation,
                                             const Trouble& trouble, TimePoint now) {
  const uint32_t rank = std::visit([](const auto& t) { return t.rank; }, trouble);
  if (rank >= plan.ranks.size() || plan.ranks[rank].host != host) return std::nullopt;
  if (const auto* ending = std::get_if<RankEnding>(&trouble))
    return GenerationEnding{generation, *ending};
  if (const auto* stopped = std::get_if<RankStopped>(&trouble)) return *stopped;
  const auto& silent = std::get<RankSilent>(trouble);
  if (silent.peer < plan.ranks.size()) silent_routes_.Note(silent, generation, now);
  return std::nullopt;
}

std::optional<SilentRoute> RankTroubles::PopBroken(
    TimePoint now, const std::function<bool(uint32_t rank)>& heard) {
  std::optional<SilentRoute> broken = silent_routes_.Broken(now, heard);
  if (broken) silent_routes_.Clear();
  return broken;
}

}  // namespace hvd
