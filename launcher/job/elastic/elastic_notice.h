// The notice to the ranks of a running generation, so that all of them act at the same commit:
// ranks are to join or leave, or the job is to end after this step. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_NOTICE_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_NOTICE_H_

#include <cstdint>
#include <optional>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

struct NoticePlan {
  uint32_t update = 0;                 // bits of CommitUpdate for the ranks to act on; 0: none now
  std::optional<TimePoint> growth_at;  // when waiting ranks may join while others still start
};
NoticePlan PlanNotice(const ElasticChange& change);
// Holds every rank of the generation at its next commit until all hosts have answered.
void HoldCommitsOfAll(ElasticChange& change, uint32_t update);
// All hosts have answered: at which commit the ranks act, and on what.
ActAtCommit OrderToAct(const ElasticState& elastic);
// The ranks of a host have stopped at a commit, or will at their next one.
void HandleHeld(ElasticChange& change, const CommitsHeldBy& held);
// Tells the ranks of a job of fixed size to stop, all at the same commit (hvd.should_stop()); a job
// whose ranks never ask continues. Applies to the running generation: a later world has its own
// pages.
void NoticeStop(ElasticChange& change, const StopAsked& asked);
// Has the job end after the current step of its ranks.
void AskToStop(ElasticChange& change, const StopAsked& asked);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_NOTICE_H_
