// The last block on the screen: why the job ended, which rank caused it, on which host, and its
// last output. Pure.
#ifndef HVD_LAUNCHER_JOB_REPORT_REPORT_H_
#define HVD_LAUNCHER_JOB_REPORT_REPORT_H_

#include <string>

#include "launcher/job/report/describe_end.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

// Number of ranks, other than the cause, that did not exit successfully on their own.
size_t CountEndedBecause(const JobState& state, uint32_t cause);

// Where the traceback of the failed rank is shown: in the report; or just above it on the screen,
// in which case the report has only the exception.
enum class TracebackPlace { kInReport, kAbove };

// Lines for stderr, or nothing when the job did well.
std::string Report(const JobState& state, TracebackPlace traceback = TracebackPlace::kInReport);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_REPORT_REPORT_H_
