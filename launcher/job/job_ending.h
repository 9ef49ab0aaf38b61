// How a job ends: after a failure, a signal or a limit its ranks are asked to end with SIGINT,
// SIGTERM and SIGKILL, a grace apart; when all have ended their agents are told to end, and when
// these are gone the run is over. Pure.
#ifndef HVD_LAUNCHER_JOB_JOB_ENDING_H_
#define HVD_LAUNCHER_JOB_JOB_ENDING_H_

#include <string>

#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

// Records the first failure and begins to end the others. `reason`: for the log.
void FailJob(JobChange& change, JobFailure failure, std::string reason);
// Of a rank that is lost and whose exit code is not known, if there is one: something else would be
// taken for the cause.
void FailOfLostRank(JobChange& change);
// The limit on exit codes of lost ranks, and on others that stay in the world that such a rank has
// left with code 0.
void EndWaitForLeavers(JobChange& change);
// hvdrun was asked to end by this signal, once more perhaps.
void TakeInterrupt(JobChange& change, int signal);
// The limit of the whole job.
void TimeOut(JobChange& change);
// Has the phase lasted too long?
void TakeDeadline(JobChange& change);
void FinishWhenAllEnded(JobChange& change);
void EndWhenAllClosed(JobChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_ENDING_H_
