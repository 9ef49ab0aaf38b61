// The last block on the screen: why the job ended, by which rank, where, and its last words. Pure.
#ifndef HVD_LAUNCHER_JOB_REPORT_REPORT_H_
#define HVD_LAUNCHER_JOB_REPORT_REPORT_H_

#include <string>

#include "launcher/job/report/describe_end.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

// How many ranks did not end well by themselves, other than the cause.
size_t CountEndedBecause(const JobState& state, uint32_t cause);

// Where the traceback of the rank that failed is: in the report, or, where the user sees it just
// above, not again: the report has its exception alone.
enum class TracebackPlace { kInReport, kAbove };

// Lines for stderr, or nothing when the job did well.
std::string Report(const JobState& state, TracebackPlace traceback = TracebackPlace::kInReport);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_REPORT_REPORT_H_
