// hvdrun and its workers are stopped for a while (Ctrl-Z), which counts for no limit. Pure.
#ifndef HVD_LAUNCHER_JOB_JOB_PAUSE_H_
#define HVD_LAUNCHER_JOB_JOB_PAUSE_H_

#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"
#include "runtime/base/clock.h"

namespace hvd {

void Pause(JobChange& change);
void Resume(JobChange& change);
// hvdrun did not run for this long, without notice (SIGSTOP, a suspended machine), and so could not
// see that ranks and hosts of an elastic job arrived in time.
void NoteHeldUp(JobState& state, Duration away);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_PAUSE_H_
