// By which way a host is reached: libssh2 in this process (a tenth of the time, all hosts at once),
// or the ssh program, which can do what libssh2 cannot. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_METHOD_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_METHOD_H_

#include <string>
#include <vector>

#include "discovery/known_hosts.h"
#include "discovery/ssh_config.h"

namespace hvd {

enum class SshMethod { kLibssh2, kSshProgram };

// The facts that were looked up beside the configuration.
struct SshFacts {
  std::vector<std::string> known_types;  // of the host's keys in known_hosts
  bool authority_only = false;           // only @cert-authority lines speak of the host
  bool certificate = false;              // a certificate lies beside an identity file, or is named
  bool only_security_keys = false;       // identity files exist, and all are FIDO keys
  bool revoked_keys_file = false;        // RevokedHostKeys names a file that exists
};

struct SshChoice {
  SshMethod method = SshMethod::kLibssh2;
  std::string why;  // for the ssh program: what libssh2 cannot, "the user has a certificate"

  bool operator==(const SshChoice&) const = default;
};

SshChoice ChooseSshMethod(const SshConfig& config, const SshFacts& facts);

// The treatment of the key of a host that nothing is known about. It is accepted by being noted in
// known_hosts.
enum class UnknownHostKeys { kAsConfigured, kRefuse, kAccept };
// Nobody is asked, so "ask" refuses. "no" goes no further than "accept-new": a key that changed is
// never accepted.
bool AcceptsUnknown(UnknownHostKeys setting, StrictHostKeys configured);

// Why another try by the ssh program may succeed where our login was refused; "" when it would fare
// no better.
struct LoginRefusal {
  std::vector<std::string> methods;  // that the server takes
  bool skipped_kinds = false;        // there were certificates or security keys that we cannot use
};
std::string WhatSshMightDo(const SshConfig& config, const LoginRefusal& refusal);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_METHOD_H_
