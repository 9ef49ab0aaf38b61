#include "launcher/bundle/packing.h"

#include <openssl/evp.h>

namespace hvd {

std::string Sha256Hex(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (::EVP_Digest(bytes.data(), bytes.size(), digest, &size, ::EVP_sha256(), nullptr) != 1)
    size = 0;
  std::string text;
  for (unsigned int i = 0; i < size; ++i)
    text += {kDigits[digest[i] >> 4], kDigits[digest[i] & 15]};
  return text;
}

}  // namespace hvd
