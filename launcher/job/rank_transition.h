// RankTransition: the start, the departure and the end of ranks and workers, applied to the state
// of a job.
#ifndef HVD_LAUNCHER_JOB_RANK_TRANSITION_H_
#define HVD_LAUNCHER_JOB_RANK_TRANSITION_H_

#include <cstdint>
#include <string>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

class RankTransition {
 public:
  // `change` outlives this object.
  explicit RankTransition(ElasticChange& change)
      : change_(change.job), state_(change.state), members_(change) {}

  void Handle(const WorkerStarted& event);
  void Handle(const WorkerNotStarted& event);
  void Handle(const RankJoined& event);
  void Handle(const RankLeft& event);
  void Handle(const RankLost& event);
  void Handle(const WorkerExited& event);
  // The job runs once none of its workers is still to be started.
  void RunWhenAllBegun();

 private:
  bool Known(uint32_t rank) const { return rank < state_.ranks.size(); }
  bool WasAsked(uint32_t rank, int64_t stamp_ns) const;
  void BreakWaiting(uint32_t missing);
  void FailOf(uint32_t rank, std::string reason);
  void Part(uint32_t rank, int64_t stamp_ns, bool had_failed);

  JobChange& change_;
  JobState& state_;
  ElasticChange& members_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_RANK_TRANSITION_H_
