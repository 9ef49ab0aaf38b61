// The user's private keys: the files that ssh-keygen and openssl write (OpenSSH's own format and
// PEM), for ed25519, ECDSA and RSA. Pure.
//
// Signs without libssh2, because libssh2 1.10 supports RSA with SHA-1 only: RFC 8332 came with
// 1.11, which Debian 12 and Ubuntu 22.04 do not have. OpenSSH 9.2 refuses
// libssh2_userauth_publickey_frommemory with an RSA key ("signature algorithm ssh-rsa not in
// PubkeyAcceptedAlgorithms") unless the server re-enables ssh-rsa. Obsolete once libssh2 1.11 is
// the oldest supported version.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_KEYS_PRIVATE_KEY_H_
#define HVD_LAUNCHER_CHANNELS_SSH_KEYS_PRIVATE_KEY_H_

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

inline constexpr std::string_view kRsaKey = "ssh-rsa";
inline constexpr std::string_view kRsaSha512 = "rsa-sha2-512";

// Key types usable for login: no certificates, no security keys (sk-...).
bool CanSignWith(std::string_view key_type);
// The blob with its type replaced by the signature algorithm: "rsa-sha2-512" for "ssh-rsa", others
// unchanged.
std::string LoginBlob(const std::string& blob);

class PrivateKey {
 public:
  enum class Problem { kNone, kNoKey, kEncrypted, kKind };
  struct Parsed {
    std::unique_ptr<PrivateKey> key;  // nullptr if there is a problem
    Problem problem = Problem::kNone;
    // The public key, which OpenSSH's format has in clear even for an encrypted key; "" if unknown.
    std::string blob;
  };
  // `text`: contents of the key file.
  static Parsed Parse(const std::string& text);

  ~PrivateKey();
  // The public key ("ssh-rsa" stays "ssh-rsa").
  const std::string& blob() const { return blob_; }
  // The signature as SSH encodes it after the algorithm's name; RSA with SHA-512.
  Result<std::string> Sign(std::string_view data) const;

 private:
  struct Material;
  PrivateKey(std::unique_ptr<Material> material, std::string blob);

  std::unique_ptr<Material> material_;
  std::string blob_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_KEYS_PRIVATE_KEY_H_
