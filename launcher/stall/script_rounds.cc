#include "launcher/stall/script_rounds.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hvd {
namespace {

bool AreSilent(const std::vector<ScriptRank>& ranks, int64_t warning_ms) {
  return std::ranges::any_of(ranks, [](const ScriptRank& rank) { return !rank.left; }) &&
         std::ranges::all_of(ranks, [&](const ScriptRank& rank) {
           return rank.left || (rank.seen && rank.seen->silent_ms >= warning_ms);
         });
}

// Each worker may have started a world of its own, whose ranks do not wait for those of other
// workers.
bool HaveNumbersOfOneWorld(const std::vector<ScriptRank>& ranks) {
  std::set<uint32_t> numbers;
  for (const ScriptRank& rank : ranks) numbers.insert(rank.rank);
  return numbers.size() == ranks.size();
}

}  // namespace

void ScriptRounds::Handle(uint32_t host, const ScriptObserved& observed) {
  observed_[host] = observed.ranks;
}

std::optional<ScriptStall> ScriptRounds::Look(std::map<uint32_t, ScriptRank> ranks) {
  std::map<uint32_t, std::vector<ScriptRank>> guests;  // by worker
  for (const auto& [host, observed] : observed_) {
    for (const ScriptObservation& seen : observed) {
      const auto rank = ranks.find(seen.worker);
      if (rank == ranks.end() || rank->second.left) continue;
      if (seen.is_guest != 0)
        guests[seen.worker].push_back({seen.guest, rank->second.host, false, seen});
      else
        rank->second.seen = seen;
    }
  }
  std::vector<ScriptRank> all;
  for (auto& [worker, rank] : ranks) {
    const auto found = guests.find(worker);
    if (found == guests.end())
      all.push_back(std::move(rank));
    else
      all.insert(all.end(), found->second.begin(), found->second.end());
  }
  if (!guests.empty() && !HaveNumbersOfOneWorld(all)) return std::nullopt;
  ScriptVerdict found = ExplainScript(all, warning_ms_);
  if (found.kind == ScriptVerdict::Kind::kMoves) reported_.clear();
  unexplained_ = found.key.empty() && reported_.empty() && AreSilent(all, warning_ms_);
  if (found.key.empty()) return std::nullopt;
  const bool ends = found.kind == ScriptVerdict::Kind::kHang && shutdown_ms_ > 0 &&
                    found.waited_ms >= shutdown_ms_ && !std::exchange(ended_, true);
  const bool is_new = std::exchange(reported_, found.key) != found.key;
  if (!is_new && !ends) return std::nullopt;
  return ScriptStall{std::move(found.verdict), is_new, ends};
}

}  // namespace hvd
