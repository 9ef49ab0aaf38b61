// The generations of a job of fixed size: they have the same members, and each begins when every
// rank has asked for it. Pure.
#ifndef HVD_LAUNCHER_JOB_FIXED_GENERATIONS_H_
#define HVD_LAUNCHER_JOB_FIXED_GENERATIONS_H_

#include <cstdint>

#include "launcher/job/state/job_change.h"

namespace hvd {

void BeginWhenAllWait(JobChange& change);
// Ranks that wait for a world which can no longer form are told so. `missing`: a rank that is gone.
void BreakWaiting(JobChange& change, uint32_t missing);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_FIXED_GENERATIONS_H_
