// The linker's build id of a program or library. 64-bit ELF in this machine's byte order. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_ELF_FILE_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_ELF_FILE_H_

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

// The GNU build id in hexadecimal; empty: linked without one. kInvalidArgument: not such an ELF
// file, or its loaded part is truncated.
Result<std::string> ElfBuildId(std::string_view bytes);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_ELF_FILE_H_
