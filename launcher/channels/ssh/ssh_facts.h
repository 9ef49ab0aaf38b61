// The facts from this machine's files that determine how a host is reached (ssh_method.h).
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_FACTS_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_FACTS_H_

#include <string>

#include "discovery/known_hosts.h"
#include "discovery/ssh_config.h"
#include "launcher/channels/ssh/ssh_method.h"

namespace hvd {

// Reads identity files and certificates.
SshFacts LookUpFacts(const SshConfig& config, const KnownHosts& known);

// The socket of the user's ssh-agent; "": none.
std::string AgentSocket(const SshConfig& config);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_FACTS_H_
