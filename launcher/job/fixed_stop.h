// SIGUSR1 to a job of fixed size: its ranks learn at one commit, the same on all of them, that they
// are to stop (hvd.should_stop()). A job whose ranks never ask goes on. Pure.
#ifndef HVD_LAUNCHER_JOB_FIXED_STOP_H_
#define HVD_LAUNCHER_JOB_FIXED_STOP_H_

#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

void AskToStop(JobChange& change, const StopAsked& asked);
// The ranks of a host have stopped at a commit, or will at their next one.
void HandleHeld(JobChange& change, const CommitsHeldBy& held);
// Whether a rank that ended so did what it was asked to.
bool LeftAsAsked(const JobState& state, const ProcessEnd& end);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_FIXED_STOP_H_
