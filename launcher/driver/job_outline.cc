#include "launcher/driver/job_outline.h"

#include <algorithm>
#include <set>

namespace hvd {
namespace {

// Its agent reports whether it is in a generation.
const char* StateText(const RankRecord& record) {
  if (record.waiting() && record.init.is_spare) return "spare";
  if (record.ended()) return "ended";
  return record.running() ? "outside" : "starting";
}

}  // namespace

JobView OutlineOf(const JobState& state, const std::string& job_id) {
  JobView view;
  view.job = job_id;
  view.generation = state.generation;
  if (state.phase == JobPhase::kOpening) return view;  // its plan may change
  for (uint32_t worker = 0; worker < state.ranks.size(); ++worker) {
    const RankRecord& record = state.ranks[worker];
    if (state.policy().ranks_change && record.ended()) continue;
    RankView rank;
    rank.worker = worker;
    rank.rank = record.rank;
    rank.host = state.plan.hosts[state.plan.ranks[worker].host];
    rank.pid = record.pid;
    rank.state = StateText(record);
    view.ranks.push_back(std::move(rank));
  }
  std::stable_sort(view.ranks.begin(), view.ranks.end(),
                   [](const RankView& a, const RankView& b) { return a.rank < b.rank; });
  view.size = static_cast<uint32_t>(view.ranks.size());
  return view;
}

std::map<uint32_t, ScriptRank> ScriptRanksOf(const JobState& state) {
  std::map<uint32_t, ScriptRank> ranks;
  if (state.phase != JobPhase::kRunning || state.failure) return ranks;
  for (uint32_t worker = 0; worker < state.ranks.size(); ++worker) {
    const RankRecord& record = state.ranks[worker];
    if (record.ended() && (state.policy().ranks_change || !record.end || !record.end->ok()))
      continue;
    ScriptRank rank;
    rank.rank = record.rank;
    rank.host = state.plan.hosts[state.plan.ranks[worker].host];
    rank.left = record.ended();
    ranks[worker] = std::move(rank);
  }
  return ranks;
}

std::vector<uint32_t> HostsAtWork(const JobState& state) {
  if (state.phase == JobPhase::kOpening) return {};
  std::set<uint32_t> hosts;
  for (uint32_t worker = 0; worker < state.ranks.size(); ++worker) {
    const uint32_t host = state.plan.ranks[worker].host;
    if (state.ranks[worker].running() && state.host_open[host]) hosts.insert(host);
  }
  return {hosts.begin(), hosts.end()};
}

JobCounts CountsOf(const JobState& state) {
  if (state.phase == JobPhase::kOpening) return {};  // its plan may change
  uint32_t present = 0, running = 0;
  for (const RankRecord& rank : state.ranks) {
    present += !state.policy().ranks_change || (!rank.ended() && !rank.leaving());
    running += rank.running();
  }
  // While a lost rank is replaced it still counts.
  return {std::max(present, state.elastic.generation.size()), running};
}

}  // namespace hvd
