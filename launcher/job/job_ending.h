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
// Fails the job because of a lost rank whose exit code is still unknown, if there is one; otherwise
// something else would be reported as the cause.
void FailOfLostRank(JobChange& change);
// The limit (JobOptions::leave_limit) for the exit codes of lost ranks, and for ranks that stay in
// a world that such a rank has left with code 0.
void EndWaitForLeavers(JobChange& change);
// hvdrun received this signal, possibly not the first one, and is to end the job.
void HandleInterrupt(JobChange& change, int signal);
// The whole job has exceeded its time limit.
void TimeOut(JobChange& change);
// Acts if the phase has exceeded its deadline.
void HandleDeadline(JobChange& change);
void FinishWhenAllEnded(JobChange& change);
void EndWhenAllClosed(JobChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_ENDING_H_
