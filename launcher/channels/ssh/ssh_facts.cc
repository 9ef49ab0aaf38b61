#include "launcher/channels/ssh/ssh_facts.h"

#include <unistd.h>

#include <algorithm>

#include "discovery/ssh_key.h"
#include "launcher/channels/ssh/keys/private_key.h"
#include "launcher/channels/ssh/keys/ssh_bytes.h"
#include "launcher/channels/ssh/keys/user_keys.h"
#include "runtime/base/env.h"

namespace hvd {
namespace {

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// A key that no host has, to find the entries about the host itself.
std::string UnknownKey() {
  constexpr size_t kKeyBytes = 32;
  return SshWriter().String("ssh-ed25519").String(std::string(kKeyBytes, '\0')).Release();
}

}  // namespace

SshFacts LookUpFacts(const SshConfig& config, const KnownHosts& known) {
  SshFacts facts;
  KnownHostsName name = NameInKnownHosts(config);
  facts.known_types = KnownTypes(known, name.host, name.port);
  facts.authority_only = CheckHostKey(known, name.host, name.port, UnknownKey()).verdict ==
                         HostKeyVerdict::kAuthorityOnly;
  facts.revoked_keys_file = !config.revoked_host_keys.empty() && Exists(config.revoked_host_keys);
  facts.certificate =
      std::any_of(config.certificate_files.begin(), config.certificate_files.end(), Exists);
  std::vector<IdentityFile> files = ReadIdentityFiles(config);
  bool all_strange = !files.empty();
  for (const IdentityFile& file : files) {
    facts.certificate = facts.certificate || file.certificate;
    if (file.blob.empty() || CanSignWith(KeyTypeOf(file.blob))) all_strange = false;
  }
  facts.only_security_keys = all_strange && (config.identities_only || AgentSocket(config).empty());
  return facts;
}

std::string AgentSocket(const SshConfig& config) {
  return config.identity_agent ? *config.identity_agent : GetEnv("SSH_AUTH_SOCK").value_or("");
}

}  // namespace hvd
