// Functions on public keys and hashed names that need libcrypto; ssh_key.cc is its only user in
// this folder. Pure.
#ifndef HVD_DISCOVERY_SSH_KEY_H_
#define HVD_DISCOVERY_SSH_KEY_H_

#include <optional>
#include <string>
#include <string_view>

namespace hvd {

// The type at the start of a public key's blob ("ssh-ed25519"); "": not a key.
std::string KeyTypeOf(std::string_view key);

// "SHA256:..." as `ssh-keygen -l` prints it.
std::string Fingerprint(std::string_view key);

// HMAC-SHA1, the hash of names in known_hosts.
std::string HmacSha1(std::string_view key, std::string_view text);

// Strict: complete groups of four, "=" only at the end.
std::optional<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

}  // namespace hvd

#endif  // HVD_DISCOVERY_SSH_KEY_H_
