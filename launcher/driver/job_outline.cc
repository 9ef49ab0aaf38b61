#include "launcher/driver/job_outline.h"

#include <algorithm>

namespace hvd {
namespace {

const char* StateText(RankPhase phase) {
  switch (phase) {
    case RankPhase::kRunning: return "outside";
    case RankPhase::kEnded: return "ended";
    default: return "starting";
  }
}

}  // namespace

JobView OutlineOf(const JobState& state, const std::string& job_id) {
  JobView view;
  view.job = job_id;
  view.generation = state.generation;
  if (state.phase == JobPhase::kOpening) return view;  // its plan may change
  for (uint32_t worker = 0; worker < state.ranks.size(); ++worker) {
    const RankRecord& record = state.ranks[worker];
    if (!state.fixed() && record.phase == RankPhase::kEnded) continue;
    RankView rank;
    rank.worker = worker;
    rank.rank = record.rank;
    rank.host = state.plan.hosts[state.plan.ranks[worker].host];
    rank.pid = record.pid;
    rank.state = record.is_spare ? "spare" : StateText(record.phase);
    view.ranks.push_back(std::move(rank));
  }
  std::stable_sort(view.ranks.begin(), view.ranks.end(),
                   [](const RankView& a, const RankView& b) { return a.rank < b.rank; });
  view.size = static_cast<uint32_t>(view.ranks.size());
  return view;
}

JobCounts CountsOf(const JobState& state) {
  if (state.phase == JobPhase::kOpening) return {};  // its plan may change
  uint32_t present = 0, running = 0;
  for (const RankRecord& rank : state.ranks) {
    present += rank.phase != RankPhase::kEnded && !rank.leaving;
    running += rank.phase == RankPhase::kRunning;
  }
  if (state.fixed()) return {static_cast<uint32_t>(state.ranks.size()), running};
  // While a lost rank is replaced it still counts.
  return {std::max(present, state.elastic.generation.size()), running};
}

}  // namespace hvd
