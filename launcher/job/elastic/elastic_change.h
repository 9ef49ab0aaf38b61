// ElasticChange: a JobChange, with what all parts of membership.h ask and do.
// Plain; for the time of one event.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_CHANGE_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_CHANGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/policy/rank_order.h"
#include "launcher/job/state/elastic_state.h"
#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"
#include "launcher/job/state/worker_kinds.h"
#include "runtime/base/clock.h"

namespace hvd {

struct ElasticChange {
  // `the_job` outlives this object.
  explicit ElasticChange(JobChange& the_job)
      : job(the_job), state(job.state), elastic(state.elastic), now(job.now) {}

  JobChange& job;
  JobState& state;
  ElasticState& elastic;
  const TimePoint now;
  std::optional<JobFailure> failure;  // the first one that is to end the job
  std::string failure_reason;         // of it, for the log

  void Do(auto action) { job.Do(std::move(action)); }
  void SetReason(std::string reason) { job.SetReason(std::move(reason)); }
  void Notify(std::string sentence) { job.Notify(std::move(sentence)); }
  // `why`: for the log; empty: the failure's reason.
  void FailJob(JobFailure reason, std::string why = "");
  void FailJob(std::string reason);

  bool IsAlive(uint32_t worker) const;
  // The next three: workers that are alive, of the kinds for which `is` is true. Only the list
  // looks at workers, and only if it is not empty.
  size_t CountAlive(auto is) const {
    return state.kinds.Count([&is](const WorkerKind& kind) { return !kind.lost && is(kind); });
  }
  bool AnyAlive(auto is) const { return CountAlive(is) > 0; }
  std::vector<uint32_t> AliveWorkers(auto is) const {
    std::vector<uint32_t> workers;
    const size_t count = CountAlive(is);
    workers.reserve(count);
    for (uint32_t worker = 0; worker < state.ranks.size() && workers.size() < count; ++worker) {
      if (IsAlive(worker) && is(KindOf(state.ranks[worker]))) workers.push_back(worker);
    }
    return workers;
  }
  size_t CountAlive() const;
  std::vector<uint32_t> AliveWorkers() const;
  // Alive, and not leaving.
  size_t CountStaying() const;
  std::vector<uint32_t> StayingWorkers() const;
  // "rank 2 on host node1 (pid 1234)"
  std::string WorkerText(uint32_t worker) const;
  Candidate CandidateOf(uint32_t worker) const;
  // Number of ranks needed to start, or to continue.
  uint32_t Needed() const;

  // The job begins again, with a generation or with all workers. False: that would exceed
  // --reset-limit, and the job ends.
  bool MayBeginAgain();
  void SetRunning(bool running);
  // The worker is no longer in the generation.
  void LeaveGeneration(uint32_t worker);
  // The same for a worker that is lost, or has ended without a goodbye: the generation is broken.
  void LoseMember(uint32_t worker);
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_CHANGE_H_
