// The command that starts an agent on another host, by ssh or --rsh-agent, and the meaning of the
// end of such a command. Pure; remote_script.h has what is typed over there.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_COMMAND_H_
#define HVD_LAUNCHER_CHANNELS_SSH_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/channels/command_channel.h"

namespace hvd {

// A host as the user of hvdrun named it, and the options of the command line.
struct SshHost {
  std::string name;
  std::string user;           // "": what the configuration says
  uint16_t port = 0;          // 0: likewise
  std::string identity_file;  // "": likewise
  std::string config_file;    // "": the user's own and the system's
};

// `accept_new_keys`: else as the configuration says.
std::vector<std::string> SshCommand(const SshHost& host, bool accept_new_keys,
                                    const std::string& remote_command, uint32_t connect_seconds);
// `agent` is cut at blanks: "kubectl exec -i". Then come the host and the remote command, as one
// word.
std::vector<std::string> RshAgentCommand(const std::string& agent, const std::string& host,
                                         const std::string& remote_command);

// ssh ends with 255 and says why on stderr.
ChannelEnd ReadSshEnd(const SshHost& host, const CommandEnd& end);
// A program of which nothing is known.
ChannelEnd ReadRshAgentEnd(const std::string& agent, const CommandEnd& end);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_COMMAND_H_
