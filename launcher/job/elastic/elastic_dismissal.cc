#include "launcher/job/elastic/elastic_dismissal.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <optional>

#include "launcher/job/elastic/elastic_restart.h"
#include "launcher/job/state/job_state.h"

namespace hvd {
namespace {

// A worker that has not been a rank, so that it has nothing to save.
void EndUnused(ElasticChange& change, uint32_t worker) {
  change.state.ranks[worker].end_by = change.now + change.state.options.terminate_grace;
  change.Do(SignalWorker{worker, SIGTERM});
}

}  // namespace

std::vector<uint32_t> WorkersToDismiss(const ElasticChange& change) {
  std::vector<uint32_t> workers;
  if (change.elastic.restart) return workers;  // all of them end
  for (uint32_t worker : change.AliveWorkers()) {
    const RankRecord& record = change.state.ranks[worker];
    // A rank leaves at a commit, once the others have its state.
    const bool at_commit = record.waiting() && change.elastic.running;
    if (record.stay == Stay::kLeaving && (!record.was_member() || at_commit))
      workers.push_back(worker);
  }
  return workers;
}

void Dismiss(ElasticChange& change, uint32_t worker) {
  RankRecord& record = change.state.ranks[worker];
  record.stay = Stay::kDismissed;
  if (record.waiting()) {
    change.state.StopWaiting(record);
    return change.Do(DismissWorker{worker, "its slot is no longer part of the job"});
  }
  NoteIncomplete(change);
  EndUnused(change, worker);
}

// After the first rank that ended with 0 nobody is added or replaced: when no member is left, ranks
// that never got in end, too.
void FinishIfDone(ElasticChange& change) {
  // A script that forms no generations has no members, and each of its processes ends by itself.
  const bool finished = change.elastic.any_finished && change.state.generation > 0;
  if (!finished && !change.elastic.stop_asked) return;
  bool any_member = false;
  for (uint32_t worker : change.AliveWorkers())
    any_member |= change.state.ranks[worker].in_generation != 0;
  if (any_member) return;
  for (uint32_t worker : change.AliveWorkers()) {
    RankRecord& record = change.state.ranks[worker];
    if (record.was_member() || record.dismissed()) continue;
    record.stay = Stay::kDismissed;
    change.state.StopWaiting(record);
    EndUnused(change, worker);
  }
  // The job is over but for ranks that were dismissed before.
  if (!change.StayingWorkers().empty()) return;
  for (uint32_t worker : change.AliveWorkers()) {
    RankRecord& record = change.state.ranks[worker];
    if (!record.end_by) record.end_by = change.now + change.state.options.stop_grace;
  }
}

void KillOverdue(ElasticChange& change) {
  change.elastic.next_overdue.reset();
  for (uint32_t worker : change.AliveWorkers()) {
    std::optional<TimePoint>& end_by = change.state.ranks[worker].end_by;
    if (!end_by || *end_by == TimePoint::max()) continue;
    if (change.now >= *end_by) {
      end_by = TimePoint::max();
      change.Do(SignalWorker{worker, SIGKILL});
    } else {
      change.elastic.next_overdue =
          std::min(change.elastic.next_overdue.value_or(*end_by), *end_by);
    }
  }
}

}  // namespace hvd
