// --error-file: the first cause of a failed job as one JSON object, for programs that start hvdrun.
// README.md has the fields.
#ifndef HVD_LAUNCHER_JOB_ERROR_FILE_H_
#define HVD_LAUNCHER_JOB_ERROR_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "launcher/job/job.h"
#include "runtime/base/status.h"

namespace hvd {

// The object, ended by a newline. Bytes that are no UTF-8 become U+FFFD. Pure.
std::string ErrorJson(const JobState& state, const std::string& job_id,
                      const std::vector<std::string>& command);

// Before the job: a file of a former job goes away, and a place that cannot be written to is an
// error.
Status PrepareErrorFile(const std::string& path);

// For its owner only, and never half written.
Status WriteErrorFile(const std::string& path, std::string_view text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ERROR_FILE_H_
