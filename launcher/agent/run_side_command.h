// The processes behind a side command (side_command.h), on the host where it runs.
#ifndef HVD_LAUNCHER_AGENT_RUN_SIDE_COMMAND_H_
#define HVD_LAUNCHER_AGENT_RUN_SIDE_COMMAND_H_

#include <string>

namespace hvd {

// Both block, run alone in their process, and return its exit code.
int RunResume(const std::string& job_id, const std::string& address);
int RunClear(const std::string& job_id);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_RUN_SIDE_COMMAND_H_
