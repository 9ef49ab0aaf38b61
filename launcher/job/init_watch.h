// Ranks of a job of fixed size that keep others waiting in hvd.init() are named. Pure.
#ifndef HVD_LAUNCHER_JOB_INIT_WATCH_H_
#define HVD_LAUNCHER_JOB_INIT_WATCH_H_

#include "launcher/job/state/job_change.h"

namespace hvd {

// After every event: is there something to watch?
void WatchInit(JobChange& change);
void ReportMissingRanks(JobChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_INIT_WATCH_H_
