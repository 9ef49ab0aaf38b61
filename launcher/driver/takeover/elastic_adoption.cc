#include "launcher/driver/takeover/elastic_adoption.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/elastic/elastic_notice.h"
#include "launcher/job/elastic/elastic_seats.h"
#include "launcher/job/state/job_change.h"

namespace hvd {
namespace {

// What the agents know of each worker.
std::map<uint32_t, WorkerSnapshot> WorkersIn(const HostSnapshots& snapshots) {
  std::map<uint32_t, WorkerSnapshot> workers;
  for (const auto& snapshot : snapshots) {
    if (!snapshot) continue;
    for (const WorkerSnapshot& worker : snapshot->workers) workers[worker.rank] = worker;
  }
  return workers;
}

// Workers that were to be started on a host whose agent does not have them.
std::set<uint32_t> Unstarted(const JobState& state, const HostSnapshots& snapshots) {
  const std::map<uint32_t, WorkerSnapshot> known = WorkersIn(snapshots);
  std::set<uint32_t> workers;
  for (uint32_t worker = 0; worker < state.ranks.size(); ++worker) {
    const uint32_t host = state.plan.ranks[worker].host;
    if (!state.ranks[worker].ended() && snapshots[host] && !known.contains(worker))
      workers.insert(worker);
  }
  return workers;
}

// The signal that was sent to this worker alone; 0: none.
int SignalTo(const JobState& state, const RankRecord& rank) {
  const std::optional<Restart>& restart = state.elastic.restart;
  const bool killed = rank.end_by == TimePoint::max() || (restart && restart->killing);
  if (killed || rank.loss) return SIGKILL;
  return restart || (rank.end_by && rank.dismissed() && !rank.was_member()) ? SIGTERM : 0;
}

int SignalToAll(const JobState& state) {
  if (state.killing) return SIGKILL;
  return state.terminating ? SIGTERM : state.interrupting ? SIGINT : 0;
}

void AddNotice(const ElasticState& elastic, uint64_t generation, std::vector<JobAction>& actions) {
  if (elastic.notice == CommitNotice::kNone || elastic.notice_generation != generation) return;
  if (elastic.notice == CommitNotice::kHolding) return actions.push_back(HoldCommits{generation});
  actions.push_back(OrderToAct(elastic));
}

std::string BreakReason(const ElasticState& elastic) {
  return elastic.lost_cause.empty() ? "a rank was lost, or has ended the generation"
                                    : elastic.lost_cause;
}

}  // namespace

void ForgetHosts(JobState& state, const std::vector<bool>& outlives) {
  for (uint32_t host = 0; host < state.host_open.size(); ++host) {
    if (!state.host_open[host] || outlives[host]) continue;
    state.dismissed[host] = true;
    state.elastic.hosts[host].gone = true;
  }
  state.elastic.CountHosts();
}

std::vector<JobAction> UnfinishedActions(const JobState& state, const HostSnapshots& snapshots,
                                         TimePoint now) {
  std::vector<JobAction> actions;
  const ElasticState& elastic = state.elastic;
  if (const std::set<uint32_t> unstarted = Unstarted(state, snapshots); !unstarted.empty()) {
    JobState asked = state;
    JobChange change{asked, now};
    actions.push_back(MembersToStart(ElasticChange(change), unstarted));
  }
  if (state.generation > 0) actions.push_back(BeginWorld{state.generation, elastic.generation});
  AddNotice(elastic, state.generation, actions);
  if (state.generation > 0 && elastic.broken)
    actions.push_back(BreakGeneration{state.generation, BreakReason(elastic)});
  for (uint32_t worker = 0; worker < state.ranks.size(); ++worker) {
    const RankRecord& rank = state.ranks[worker];
    const int signal = rank.ended() ? 0 : SignalTo(state, rank);
    if (signal != 0) actions.push_back(SignalWorker{worker, signal});
  }
  if (const int signal = SignalToAll(state); signal != 0) actions.push_back(SignalWorkers{signal});
  for (uint32_t host = 0; host < elastic.hosts.size(); ++host) {
    if (elastic.hosts[host].gone && state.host_open[host] && snapshots[host])
      actions.push_back(DismissHost{host});
  }
  if (state.phase >= JobPhase::kFinishing) actions.push_back(FinishJob{});
  if (state.phase == JobPhase::kDone) actions.push_back(EndRun{});
  return actions;
}

std::vector<JobEvent> MissedEvents(const JobState& state, const HostSnapshots& snapshots) {
  std::vector<JobEvent> events;
  for (uint32_t host = 0; host < snapshots.size(); ++host) {
    const bool gone = state.elastic.hosts[host].gone;
    if (gone && state.host_open[host] && !snapshots[host]) events.emplace_back(AgentFinished{host});
  }
  std::vector<std::pair<int64_t, JobEvent>> ends;
  const auto add_ends = [&ends](const auto& list, auto is_new) {
    for (const auto& event : list) {
      if (is_new(event)) ends.emplace_back(event.noticed_ns, event);
    }
  };
  const auto in_generation = [&state](const auto& event) {
    return event.generation != 0 && state.ranks[event.rank].in_generation == event.generation;
  };
  for (const auto& snapshot : snapshots) {
    if (!snapshot) continue;
    for (const WorkerSnapshot& worker : snapshot->workers) {
      const RankRecord& rank = state.ranks[worker.rank];
      if (rank.ended() || rank.pid != 0) continue;
      if (worker.pid != 0) {
        events.emplace_back(WorkerStarted{worker.rank, worker.pid});
      } else {
        events.emplace_back(WorkerNotStarted{
            worker.rank, EAGAIN, "its agent could not start it while hvdrun was being replaced"});
      }
    }
    add_ends(snapshot->left, in_generation);
    add_ends(snapshot->lost, in_generation);
    add_ends(snapshot->exited,
             [&state](const WorkerExited& exited) { return !state.ranks[exited.rank].ended(); });
  }
  std::ranges::stable_sort(ends, {}, [](const auto& end) { return end.first; });
  for (auto& [stamp, event] : ends) events.push_back(std::move(event));
  for (const auto& snapshot : snapshots) {
    if (!snapshot) continue;
    for (const WorkerSnapshot& worker : snapshot->workers) {
      const RankRecord& rank = state.ranks[worker.rank];
      if (rank.ended()) continue;
      // A member of the last generation waits for it if its agent has not begun it yet.
      const bool unheard =
          rank.state == WorkerState::kMember && rank.in_generation > snapshot->generation;
      if (worker.waiting != 0 && !rank.waiting() && !unheard)
        events.emplace_back(RankJoined{worker.rank});
      if (worker.waiting == 0 && rank.waiting())
        events.emplace_back(RankLost{worker.rank, worker.pid});
    }
  }
  return events;
}

}  // namespace hvd
