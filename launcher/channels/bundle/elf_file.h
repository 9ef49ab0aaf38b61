// The id that the linker gave to a program or library, read without running it. ELF of 64 bits in
// this machine's byte order. Pure: bytes in, a name or one sentence out.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_ELF_FILE_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_ELF_FILE_H_

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

// The GNU build id in hexadecimal; empty: it was linked without. kInvalidArgument: no such file, or
// one whose loaded part is cut off.
Result<std::string> ElfBuildId(std::string_view bytes);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_ELF_FILE_H_
