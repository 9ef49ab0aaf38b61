// The algorithms that hvdrun's SSH client offers: those allowed by the user's ssh configuration, in
// its order, without those that OpenSSH has removed from its defaults or that libssh2 does not
// support. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_ALGORITHMS_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_ALGORITHMS_H_

#include <string>
#include <vector>

#include "discovery/ssh_config.h"

namespace hvd {

// Protocol names, most preferred first.
struct SshAlgorithms {
  std::vector<std::string> key_exchange;
  std::vector<std::string> host_keys;
  std::vector<std::string> ciphers;  // the same in both directions
  std::vector<std::string> macs;     // the same in both directions

  bool operator==(const SshAlgorithms&) const = default;
};

bool Holds(const std::vector<std::string>& list, const std::string& name);

// Algorithms that OpenSSH offers by default and libssh2 1.10 supports. Host keys: those that
// libssh2 can verify.
const SshAlgorithms& AlgorithmsWeKnow();

// `known_types`: of the host's keys in known_hosts; these are offered first. A list may be empty:
// see NothingLeft.
SshAlgorithms AlgorithmsToOffer(const SshConfig& config,
                                const std::vector<std::string>& known_types);

// The configuration keyword of the first empty list, such as "Ciphers"; "": none is empty.
std::string NothingLeft(const SshAlgorithms& offer);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_ALGORITHMS_H_
