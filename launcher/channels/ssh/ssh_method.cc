#include "launcher/channels/ssh/ssh_method.h"

#include <algorithm>

#include "launcher/channels/ssh/ssh_algorithms.h"

namespace hvd {
namespace {

bool Share(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& word) { return Holds(b, word); });
}

// Why the ssh program is needed; empty if libssh2 will do.
std::string WhatOnlySshCan(const SshConfig& config, const SshFacts& facts) {
  const std::vector<std::string>& ours = AlgorithmsWeKnow().host_keys;
  if (config.proxy_use_fdpass) return "ProxyUseFdpass is on";
  if (!config.known_hosts_command.empty()) return "KnownHostsCommand is set";
  if (facts.revoked_keys_file) return "RevokedHostKeys is set";
  if (!config.pkcs11_provider.empty()) return "PKCS11Provider is set";
  if (!config.bind_address.empty()) return "BindAddress is set";
  if (!config.bind_interface.empty()) return "BindInterface is set";
  if (facts.certificate) return "the user has a certificate";
  if (facts.only_security_keys) return "the user's keys are on a security key";
  if (!config.pubkey_authentication) return "PubkeyAuthentication is off";
  if (!config.preferred_authentications.empty() &&
      !Holds(config.preferred_authentications, "publickey")) {
    return "PreferredAuthentications leaves publickey out";
  }
  if (facts.authority_only) return "the host is known by a certificate authority";
  if (!facts.known_types.empty() && !Share(facts.known_types, ours))
    return "the host is known by a key of type " + facts.known_types.front() + " only";
  const std::string keyword = NothingLeft(AlgorithmsToOffer(config, facts.known_types));
  return keyword.empty() ? "" : keyword + " allows none that hvdrun's own client may use";
}

}  // namespace

SshChoice ChooseSshMethod(const SshConfig& config, const SshFacts& facts) {
  std::string why = WhatOnlySshCan(config, facts);
  return {why.empty() ? SshMethod::kLibssh2 : SshMethod::kSshProgram, why};
}

bool AcceptsUnknown(UnknownHostKeys setting, StrictHostKeys configured) {
  if (setting != UnknownHostKeys::kAsConfigured) return setting == UnknownHostKeys::kAccept;
  return configured == StrictHostKeys::kAcceptNew || configured == StrictHostKeys::kNo;
}

std::string WhatSshMightDo(const SshConfig& config, const LoginRefusal& refusal) {
  if (refusal.skipped_kinds) return "a certificate or security key may be accepted";
  if (config.gssapi_authentication && Holds(refusal.methods, "gssapi-with-mic"))
    return "the server takes GSSAPI (Kerberos)";
  if (config.hostbased_authentication && Holds(refusal.methods, "hostbased"))
    return "the server takes host-based logins";
  return "";
}

}  // namespace hvd
