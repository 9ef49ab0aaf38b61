// hvdrun and its workers are stopped for a while (Ctrl-Z), which counts for no limit. Pure.
#ifndef HVD_LAUNCHER_JOB_JOB_PAUSE_H_
#define HVD_LAUNCHER_JOB_JOB_PAUSE_H_

#include "launcher/job/job_change.h"

namespace hvd {

void Pause(JobChange& change);
void Resume(JobChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_PAUSE_H_
