// The code of a failed job, which `hvdrun explain CODE` explains (configs/failure_codes.h). Pure.
#ifndef HVD_LAUNCHER_JOB_REPORT_FAILURE_CODE_H_
#define HVD_LAUNCHER_JOB_REPORT_FAILURE_CODE_H_

#include <string>
#include <string_view>

#include "launcher/job/state/job_state.h"

namespace hvd {

// "HVD102"; empty: the job did not fail.
std::string_view FailureCodeOf(const JobState& state);

// The last line of the report; empty where the user ended the job.
std::string CodeLine(const JobState& state);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_REPORT_FAILURE_CODE_H_
