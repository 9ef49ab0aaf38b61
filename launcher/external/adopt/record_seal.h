// Authenticates the records that adopting agents store in a key-value server, if their job has a
// secret (world_secret.h): a reader knows that an agent of the job wrote this record under this
// name, and the server never sees the key of the world. Pure. Without a secret ("") texts are
// unchanged.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_RECORD_SEAL_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_RECORD_SEAL_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

inline constexpr size_t kSealBytes = 70;

// The text followed by the proof that a holder of the secret wrote it under `key`.
std::string SealRecord(const std::string& secret, std::string_view key, std::string_view text);
// The text. kInvalidArgument, worded to follow "the record ...", if the proof is missing or wrong,
// or if there is a proof but no secret.
Result<std::string> OpenRecord(const std::string& secret, std::string_view key,
                               std::string_view sealed);
// The key of a world, of 64 hexadecimal digits: from the secret and the server's `nonce`, which is
// not secret. The nonce itself without a secret.
std::string KeyOfWorld(const std::string& secret, const std::string& nonce);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_RECORD_SEAL_H_
