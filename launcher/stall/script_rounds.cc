#include "launcher/stall/script_rounds.h"

#include <utility>

namespace hvd {

void ScriptRounds::Take(uint32_t host, const ScriptObserved& observed) {
  observed_[host] = observed.ranks;
}

std::optional<ScriptStall> ScriptRounds::Look(std::map<uint32_t, ScriptRank> ranks) {
  for (const auto& [host, observed] : observed_) {
    for (const ScriptObservation& seen : observed) {
      const auto rank = ranks.find(seen.worker);
      if (rank != ranks.end() && !rank->second.left) rank->second.seen = seen;
    }
  }
  std::vector<ScriptRank> all;
  for (auto& [worker, rank] : ranks) all.push_back(std::move(rank));
  ScriptVerdict found = ExplainScript(all, warning_ms_);
  if (found.kind == ScriptVerdict::Kind::kMoves) said_.clear();
  if (found.key.empty()) return std::nullopt;
  const bool ends = found.kind == ScriptVerdict::Kind::kHang && shutdown_ms_ > 0 &&
                    found.waited_ms >= shutdown_ms_ && !std::exchange(ended_, true);
  const bool is_new = std::exchange(said_, found.key) != found.key;
  if (!is_new && !ends) return std::nullopt;
  return ScriptStall{std::move(found.verdict), is_new, ends};
}

}  // namespace hvd
