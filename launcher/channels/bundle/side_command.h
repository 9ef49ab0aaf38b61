// Side commands: processes that hvdrun runs on a host beside its agent, over a connection of their
// own.
//   hvdrun agent --resume ID ADDRESS: gives its stdin and stdout to the agent of this job that
//       waits at ADDRESS, for the stream of a driver whose former connection is lost, and stays
//       until the agent needs them no more
//   hvdrun agent --clear ID: ends every process of the job that is left on this host, also an agent
//       that is stopped
// Nothing secret is in a command line: ADDRESS is a random name that the agent holds by then, and
// the driver proves itself to the agent through the connection (resume_listener.h).
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_SIDE_COMMAND_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_SIDE_COMMAND_H_

#include <string>

#include "launcher/wire/messages.h"

namespace hvd {

enum class SideCommand { kResume, kClear };

// For the login shell over there, whichever it is; `there` is the agent's answer. Pure.
std::string SideCommandLine(SideCommand side_command, const AgentPath& there,
                            const std::string& job_id);
// A resuming side command prints this instead of the greeting when no agent waits. Pure.
std::string NoAgentText(const std::string& job_id);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_SIDE_COMMAND_H_
