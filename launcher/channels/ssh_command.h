// The command that starts an agent on another host, by ssh or --rsh-agent, and the interpretation
// of the end of such a command. Pure; remote_script.h has the remote command.
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
  std::string user;           // "": from the configuration
  uint16_t port = 0;          // 0: likewise
  std::string identity_file;  // "": likewise
  std::string config_file;    // "": the user's and the system's
  // Limit of an attempt to connect by libssh2, unless the configuration has one; 0: none.
  uint32_t connect_seconds = 0;
};

// `accept_new_keys` false: as configured.
std::vector<std::string> SshCommand(const SshHost& host, bool accept_new_keys,
                                    const std::string& remote_command, uint32_t connect_seconds);
// `agent` is split at blanks: "/etc/mpi/kubexec.sh". The host and the remote command, as one word,
// follow; `exec` of kubectl, docker and the like starts no shell, and is given one: "kubectl exec
// -i", HOST, "--", "sh", "-c", the remote command.
std::vector<std::string> RshAgentCommand(const std::string& agent, const std::string& host,
                                         const std::string& remote_command);

// On its own errors ssh exits with 255 and a message on stderr.
ChannelEnd ReadSshEnd(const SshHost& host, const CommandEnd& end);
// For an unknown program.
ChannelEnd ReadRshAgentEnd(const std::string& agent, const CommandEnd& end);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_COMMAND_H_
