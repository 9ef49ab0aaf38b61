// Which algorithms our own SSH client offers a server: those that the user's ssh configuration
// allows, in the user's order, less those that OpenSSH has dropped from its defaults and those that
// libssh2 does not know. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_ALGORITHMS_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_ALGORITHMS_H_

#include <string>
#include <vector>

#include "discovery/ssh_config.h"

namespace hvd {

// By their names in the protocol, the most liked first.
struct SshAlgorithms {
  std::vector<std::string> key_exchange;
  std::vector<std::string> host_keys;
  std::vector<std::string> ciphers;  // the same in both directions
  std::vector<std::string> macs;     // the same in both directions

  bool operator==(const SshAlgorithms&) const = default;
};

bool Holds(const std::vector<std::string>& list, const std::string& name);

// The best that both OpenSSH offers by default and libssh2 1.10 knows. Its host keys are those that
// libssh2 can check.
const SshAlgorithms& AlgorithmsWeKnow();

// `known_types`: of the host's keys in known_hosts; these are asked for first. A list may be empty:
// see NothingLeft.
SshAlgorithms AlgorithmsToOffer(const SshConfig& config,
                                const std::vector<std::string>& known_types);

// The keyword of the first list that is empty, "Ciphers"; "" when each has something.
std::string NothingLeft(const SshAlgorithms& offer);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_ALGORITHMS_H_
