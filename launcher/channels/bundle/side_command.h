// Side commands: processes that hvdrun runs on a host in addition to its agent, each over its own
// connection.
//   hvdrun agent --resume ID ADDRESS: gives its stdin and stdout to the agent of this job that
//       waits at ADDRESS, for the stream of a driver whose former connection is lost, and stays
//       until the agent needs them no more
//   hvdrun agent --clear ID: ends every process of the job that is left on this host, also an agent
//       that is stopped
// The command line has no secret: ADDRESS is a random name that the agent has already bound, and
// the driver authenticates to the agent over the connection (resume_listener.h).
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_SIDE_COMMAND_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_SIDE_COMMAND_H_

#include <string>

#include "launcher/wire/messages.h"

namespace hvd {

enum class SideCommand { kResume, kClear };

// The command for any login shell on the host; `there` is the path that the agent reported. Pure.
std::string SideCommandLine(SideCommand side_command, const AgentPath& there,
                            const std::string& job_id);
// A resuming side command prints this instead of the greeting when no agent waits. Pure.
std::string NoAgentText(const std::string& job_id);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_SIDE_COMMAND_H_
