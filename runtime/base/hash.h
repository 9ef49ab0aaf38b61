// A hash of bytes, the same in every process and release. Not collision-resistant.
#ifndef HVD_RUNTIME_BASE_HASH_H_
#define HVD_RUNTIME_BASE_HASH_H_

#include <cstdint>
#include <string_view>

namespace hvd {

inline constexpr uint64_t kHashStart = 0xcbf29ce484222325;

// FNV-1a, 64 bits. HashOf(b, HashOf(a)) is the hash of a + b; another `start` gives another hash
// function. Any thread.
constexpr uint64_t HashOf(std::string_view bytes, uint64_t start = kHashStart) {
  uint64_t hash = start;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_HASH_H_
