// The user's private keys: the files that ssh-keygen and openssl write (OpenSSH's own format and
// PEM), for ed25519, ECDSA and RSA. Pure.
//
// It signs by itself, because libssh2 1.10 signs with RSA by SHA-1 only: RFC 8332 came with 1.11,
// which Debian 12 and Ubuntu 22.04 do not have. Tried against OpenSSH 9.2:
// libssh2_userauth_publickey_frommemory with an RSA key is refused ("signature algorithm ssh-rsa
// not in PubkeyAcceptedAlgorithms") and succeeds only where the server allows ssh-rsa again. With
// libssh2 1.11 as the oldest, that reason is gone.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_KEYS_PRIVATE_KEY_H_
#define HVD_LAUNCHER_CHANNELS_SSH_KEYS_PRIVATE_KEY_H_

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

inline constexpr std::string_view kRsaKey = "ssh-rsa";
inline constexpr std::string_view kRsaSha512 = "rsa-sha2-512";

// Which kinds of keys we can log in with: no certificates, no security keys (sk-...).
bool CanSignWith(std::string_view key_type);
// The blob with its type replaced by the algorithm that is to sign: "rsa-sha2-512" for "ssh-rsa",
// the others as they are.
std::string LoginBlob(const std::string& blob);

class PrivateKey {
 public:
  enum class Problem { kNone, kNoKey, kEncrypted, kKind };
  struct Parsed {
    std::unique_ptr<PrivateKey> key;  // nullptr when there is a problem
    Problem problem = Problem::kNone;
    // OpenSSH's format has the public key in clear, even of a key that is encrypted; "" where it is
    // not known.
    std::string blob;
  };
  // `text` is that of the file.
  static Parsed Parse(const std::string& text);

  ~PrivateKey();
  // The public key ("ssh-rsa" stays "ssh-rsa").
  const std::string& blob() const { return blob_; }
  // The signature as SSH wants it behind the algorithm's name; RSA by SHA-512.
  Result<std::string> Sign(std::string_view data) const;

 private:
  struct Material;
  PrivateKey(std::unique_ptr<Material> material, std::string blob);

  std::unique_ptr<Material> material_;
  std::string blob_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_KEYS_PRIVATE_KEY_H_
