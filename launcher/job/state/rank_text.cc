#include "launcher/job/state/rank_text.h"

#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {

std::string RankText(const JobState& state, uint32_t rank) {
  std::string text = Format("rank {}", state.ranks[rank].rank);
  if (state.ranks[rank].pid != 0) text += Format(" (pid {})", state.ranks[rank].pid);
  return text;
}

std::string RanksText(const JobState& state, const std::vector<uint32_t>& ranks) {
  constexpr size_t kMaxPids = 16;
  if (ranks.size() == 1) return RankText(state, ranks.front());
  std::string pids;
  size_t shown = 0, left = 0;
  for (uint32_t rank : ranks) {
    if (state.ranks[rank].pid == 0) continue;
    if (shown == kMaxPids) {
      ++left;
      continue;
    }
    pids += (shown++ > 0 ? ", " : "") + std::to_string(state.ranks[rank].pid);
  }
  if (left > 0) pids += Format(" and {} more", left);
  return "ranks " + RankRanges(ranks) + (pids.empty() ? "" : " (pids " + pids + ")");
}

std::string EndText(const ProcessEnd& end) {
  return end.by_signal ? Format("was ended by signal {}", end.value)
                       : Format("ended with exit code {}", end.value);
}

}  // namespace hvd
