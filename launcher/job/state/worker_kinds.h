// WorkerKinds: how many workers of a job there are of each kind. The review after each event of an
// elastic job (elastic/membership.h) asks many questions about its workers, and an answer from the
// kinds, of which there are a few, costs the same whether the job has ten workers or ten thousand.
// Plain; JobState keeps them up to date.
#ifndef HVD_LAUNCHER_JOB_STATE_WORKER_KINDS_H_
#define HVD_LAUNCHER_JOB_STATE_WORKER_KINDS_H_

#include <compare>
#include <cstddef>
#include <map>

#include "launcher/job/state/rank_record.h"

namespace hvd {

// What the review asks about a worker that has not ended: workers that differ in nothing here are
// of one kind. The words are those of RankRecord.
struct WorkerKind {
  WorkerState state = WorkerState::kStarting;
  Stay stay = Stay::kNeeded;
  bool lost = false;
  bool has_slot = false;
  bool was_member = false;
  bool in_generation = false;
  bool is_spare = false;
  bool must_end = false;  // it has a time by which it must have ended
  bool killed = false;    // and was sent SIGKILL then

  bool waiting() const { return state == WorkerState::kInInit; }
  bool leaving() const { return stay != Stay::kNeeded; }
  bool dismissed() const { return stay == Stay::kDismissed; }
  auto operator<=>(const WorkerKind&) const = default;
};

inline WorkerKind KindOf(const RankRecord& worker) {
  return {.state = worker.state,
          .stay = worker.stay,
          .lost = worker.loss.has_value(),
          .has_slot = worker.has_slot,
          .was_member = worker.was_member(),
          .in_generation = worker.in_generation != 0,
          .is_spare = worker.waiting() && worker.init.is_spare,
          .must_end = worker.end_by.has_value(),
          .killed = worker.end_by == TimePoint::max()};
}

class WorkerKinds {
 public:
  // Of a worker that has ended nothing is counted.
  void Add(const RankRecord& worker) {
    if (!worker.ended()) ++counts_[KindOf(worker)];
  }
  void Remove(const RankRecord& worker) {
    if (worker.ended()) return;
    const auto count = counts_.find(KindOf(worker));
    if (--count->second == 0) counts_.erase(count);
  }

  // How many workers are of a kind for which `is` is true.
  size_t Count(auto is) const {
    size_t sum = 0;
    for (const auto& [kind, count] : counts_) sum += is(kind) ? count : 0;
    return sum;
  }
  bool Any(auto is) const { return Count(is) > 0; }

  bool operator==(const WorkerKinds&) const = default;

 private:
  std::map<WorkerKind, size_t> counts_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_STATE_WORKER_KINDS_H_
