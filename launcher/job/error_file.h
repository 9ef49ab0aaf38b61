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

// The object, ended by a newline. Bytes that are not valid UTF-8 become U+FFFD. Pure.
std::string ErrorJson(const JobState& state, const std::string& job_id,
                      const std::vector<std::string>& command);

// Called before the job starts: removes the file of an earlier job; a path that cannot be written
// is an error.
Status PrepareErrorFile(const std::string& path);

// Mode 0600, written to a temporary file and renamed.
Status WriteErrorFile(const std::string& path, std::string_view text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ERROR_FILE_H_
