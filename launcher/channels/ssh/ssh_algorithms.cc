#include "launcher/channels/ssh/ssh_algorithms.h"

#include <algorithm>

namespace hvd {
namespace {

using Names = std::vector<std::string>;

// An empty list in the configuration means that it was not printed (an older ssh); then all are
// allowed.
Names Allowed(const Names& configured, const Names& known) {
  if (configured.empty()) return known;
  Names allowed;
  for (const std::string& name : configured) {
    if (Holds(known, name) && !Holds(allowed, name)) allowed.push_back(name);
  }
  return allowed;
}

}  // namespace

bool Holds(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

const SshAlgorithms& AlgorithmsWeKnow() {
  static const auto* const known = new SshAlgorithms{
      .key_exchange = {"curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256",
                       "ecdh-sha2-nistp384", "ecdh-sha2-nistp521",
                       "diffie-hellman-group-exchange-sha256", "diffie-hellman-group16-sha512",
                       "diffie-hellman-group18-sha512", "diffie-hellman-group14-sha256"},
      // Not RSA: libssh2 supports it with SHA-1 only.
      .host_keys = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                    "ecdsa-sha2-nistp521"},
      .ciphers = {"aes128-ctr", "aes192-ctr", "aes256-ctr"},
      .macs = {"hmac-sha2-256", "hmac-sha2-512", "hmac-sha1"}};
  return *known;
}

SshAlgorithms AlgorithmsToOffer(const SshConfig& config,
                                const std::vector<std::string>& known_types) {
  const SshAlgorithms& known = AlgorithmsWeKnow();
  SshAlgorithms offer{.key_exchange = Allowed(config.key_exchange_algorithms, known.key_exchange),
                      .host_keys = Allowed(config.host_key_algorithms, known.host_keys),
                      .ciphers = Allowed(config.ciphers, known.ciphers),
                      .macs = Allowed(config.macs, known.macs)};
  std::stable_partition(offer.host_keys.begin(), offer.host_keys.end(),
                        [&](const std::string& type) { return Holds(known_types, type); });
  return offer;
}

std::string NothingLeft(const SshAlgorithms& offer) {
  if (offer.key_exchange.empty()) return "KexAlgorithms";
  if (offer.host_keys.empty()) return "HostKeyAlgorithms";
  if (offer.ciphers.empty()) return "Ciphers";
  return offer.macs.empty() ? "MACs" : "";
}

}  // namespace hvd
