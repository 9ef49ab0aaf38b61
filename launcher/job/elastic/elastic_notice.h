// The notice to the ranks of a running generation, so that all of them act at the same commit:
// there are ranks to let in or out, or the job is to end after this step. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_NOTICE_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_NOTICE_H_

#include <cstdint>
#include <optional>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

struct NoticePlan {
  uint32_t update = 0;                 // bits of CommitUpdate for the ranks to act on; 0: none now
  std::optional<TimePoint> growth_at;  // when ranks that wait are let in, though others still start
};
NoticePlan PlanNotice(const ElasticChange& change);
// Lets no rank of the generation pass another commit until its hosts have answered.
void HoldCommitsOfAll(ElasticChange& change, uint32_t update);
// All hosts have answered: at which commit the ranks act, and on what.
ActAtCommit OrderToAct(const ElasticState& elastic);
// The ranks of a host have stopped at a commit, or will at their next one.
void TakeHeld(ElasticChange& change, const CommitsHeldBy& held);
// The ranks of a job of fixed size learn at one commit, the same on all of them, that they are to
// stop (hvd.should_stop()); a job whose ranks never ask goes on. For the generation that runs: a
// world that begins later has pages of its own.
void NoticeStop(ElasticChange& change, const StopAsked& asked);
// The job is to end after the step that its ranks are in.
void AskToStop(ElasticChange& change, const StopAsked& asked);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_NOTICE_H_
