// Texts that describe how a worker ended. Pure.
#ifndef HVD_LAUNCHER_JOB_REPORT_DESCRIBE_END_H_
#define HVD_LAUNCHER_JOB_REPORT_DESCRIBE_END_H_

#include <string>

#include "launcher/job/state/job_state.h"

namespace hvd {

// "signal 9 (SIGKILL)".
std::string SignalText(int signal);

// "exit code 3", "signal 9 (SIGKILL)".
std::string DescribeEnd(const ProcessEnd& end);

// "SIGKILL"; empty for a signal without a name.
std::string SignalName(int signal);

// The end of a rank with what is known of its cause; one sentence without its subject.
std::string DescribeCause(const RankRecord& rank);

// "succeeded", "failed" by itself, "left" with code 0 while others needed it, "ended" by hvdrun,
// "lost" with its host, "not_started".
const char* RankStateName(const RankRecord& rank);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_REPORT_DESCRIBE_END_H_
