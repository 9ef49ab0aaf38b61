#include "launcher/bundle/packing.h"

#include <openssl/evp.h>
#include <zlib.h>

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

Result<std::string> Gzip(std::string_view bytes) {
  constexpr int kLevel = 3, kGzipWindow = 15 + 16, kMemory = 8;
  z_stream stream{};
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return OutOfMemory("there is no memory to compress " + std::to_string(bytes.size()) + " bytes");
  std::string packed(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  int ended = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (ended != Z_STREAM_END) return Internal("zlib did not compress it");
  return packed;
}

}  // namespace hvd
