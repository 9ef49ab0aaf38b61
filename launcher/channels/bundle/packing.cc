#include "launcher/channels/bundle/packing.h"

#include <openssl/evp.h>

#include "runtime/base/text/hex_text.h"

namespace hvd {

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (::EVP_Digest(bytes.data(), bytes.size(), digest, &size, ::EVP_sha256(), nullptr) != 1)
    size = 0;
  return HexOf(std::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace hvd
