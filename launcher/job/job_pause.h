// hvdrun and its workers are stopped for a while (Ctrl-Z), which counts for no limit. Pure.
#ifndef HVD_LAUNCHER_JOB_JOB_PAUSE_H_
#define HVD_LAUNCHER_JOB_JOB_PAUSE_H_

#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"
#include "runtime/base/clock.h"

namespace hvd {

void Pause(JobChange& change);
void Resume(JobChange& change);
// hvdrun did not run for so long, though nobody told it before (SIGSTOP, a machine that was
// suspended): it could not hear that the ranks and hosts of an elastic job came in time.
void NoteHeldUp(JobState& state, Duration away);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_PAUSE_H_
