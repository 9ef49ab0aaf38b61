// The few facts about public keys and hashed names that need libcrypto, whose only user in this
// folder is ssh_key.cc. Pure.
#ifndef HVD_DISCOVERY_SSH_KEY_H_
#define HVD_DISCOVERY_SSH_KEY_H_

#include <optional>
#include <string>
#include <string_view>

namespace hvd {

// The type that a public key's blob begins with ("ssh-ed25519"); "" when it is no key.
std::string KeyTypeOf(std::string_view key);

// "SHA256:..." as `ssh-keygen -l` prints it.
std::string Fingerprint(std::string_view key);

// HMAC-SHA1, the hash of names in known_hosts.
std::string HmacSha1(std::string_view key, std::string_view text);

// Strict: whole groups of four, "=" at the end alone.
std::optional<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

}  // namespace hvd

#endif  // HVD_DISCOVERY_SSH_KEY_H_
