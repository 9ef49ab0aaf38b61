// The last block on the screen: what ended the job, who, where, and its last words. Pure.
#ifndef HVD_LAUNCHER_JOB_REPORT_H_
#define HVD_LAUNCHER_JOB_REPORT_H_

#include <string>

#include "launcher/job/job.h"

namespace hvd {

// "exit code 3", "signal 9 (SIGKILL)".
std::string DescribeEnd(const ProcessEnd& end);

// "SIGKILL"; empty for a signal without a name.
std::string SignalName(int signal);

// The end of a rank with what is known of its cause; one sentence without its subject.
std::string DescribeCause(const RankRecord& rank);

// "succeeded", "failed" by itself, "left" with code 0 but without hvd.shutdown(), "ended" by
// hvdrun, "lost" with its host, "not_started".
const char* RankStateName(const RankRecord& rank);

// How many ranks did not end well by themselves, other than the cause.
size_t CountEndedBecause(const JobState& state, uint32_t cause);

// Lines for stderr, or nothing when the job did well.
std::string Report(const JobState& state);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_REPORT_H_
