// The last block on the screen: why the job ended, by which rank, where, and its last words. Pure.
#ifndef HVD_LAUNCHER_JOB_REPORT_REPORT_H_
#define HVD_LAUNCHER_JOB_REPORT_REPORT_H_

#include <string>

#include "launcher/job/report/describe_end.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

// How many ranks did not end well by themselves, other than the cause.
size_t CountEndedBecause(const JobState& state, uint32_t cause);

// Lines for stderr, or nothing when the job did well.
std::string Report(const JobState& state);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_REPORT_REPORT_H_
