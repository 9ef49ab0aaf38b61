// Chooses how a host is reached: libssh2 in this process (a tenth of the time, all hosts at once),
// or the ssh program where libssh2 lacks a feature. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_METHOD_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_METHOD_H_

#include <string>
#include <vector>

#include "discovery/known_hosts.h"
#include "discovery/ssh_config.h"

namespace hvd {

enum class SshMethod { kLibssh2, kSshProgram };

// Facts apart from the configuration (LookUpFacts).
struct SshFacts {
  std::vector<std::string> known_types;  // of the host's keys in known_hosts
  bool authority_only = false;           // only @cert-authority lines match the host
  bool certificate = false;         // an identity has a certificate, or the configuration names one
  bool only_security_keys = false;  // identity files exist, and all are FIDO keys
  bool revoked_keys_file = false;   // RevokedHostKeys names a file that exists
};

struct SshChoice {
  SshMethod method = SshMethod::kLibssh2;
  std::string why;  // for the ssh program: why it is needed, "the user has a certificate"

  bool operator==(const SshChoice&) const = default;
};

SshChoice ChooseSshMethod(const SshConfig& config, const SshFacts& facts);

// What to do with the key of an unknown host. An accepted key is added to known_hosts.
enum class UnknownHostKeys { kAsConfigured, kRefuse, kAccept };
// hvdrun never prompts, so "ask" refuses. "no" means "accept-new": a changed key is never accepted.
bool AcceptsUnknown(UnknownHostKeys setting, StrictHostKeys configured);

// Why the ssh program may succeed after this login was refused; "": it would not help.
struct LoginRefusal {
  std::vector<std::string> methods;  // offered by the server
  bool skipped_kinds = false;  // there were certificates or security keys, which libssh2 cannot use
};
std::string WhatSshMightDo(const SshConfig& config, const LoginRefusal& refusal);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_METHOD_H_
