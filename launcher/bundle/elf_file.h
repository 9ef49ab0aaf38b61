// What is known of a program or library without running it: where its loaded part ends and what its
// linker named it by. ELF of 64 bits in this machine's byte order. Pure: bytes in, facts or one
// sentence out.
#ifndef HVD_LAUNCHER_BUNDLE_ELF_FILE_H_
#define HVD_LAUNCHER_BUNDLE_ELF_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

struct ElfFacts {
  size_t loaded_bytes = 0;  // from the beginning of the file; symbols for debuggers lie behind
  std::string build_id;     // GNU build id, in hexadecimal; empty: it was linked without
};

bool IsElf(std::string_view bytes);
// kInvalidArgument: no such file, or one that is cut off.
Result<ElfFacts> ReadElf(std::string_view bytes);

// The same file without what is behind its loaded part and without the table of its sections, which
// only linkers and debuggers read.
std::string StrippedElf(std::string_view bytes, const ElfFacts& facts);

}  // namespace hvd

#endif  // HVD_LAUNCHER_BUNDLE_ELF_FILE_H_
