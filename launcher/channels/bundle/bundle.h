// The bundle: the part of this installation that another host needs (hvdrun, the runtime with its
// plug-ins, the Python package), as one archive, and the build id. Reads files; stateless; any
// thread.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_BUNDLE_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_BUNDLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

// SHA-256 in 64 hexadecimal digits, as sha256sum prints it. Pure.
std::string Sha256Hex(std::string_view bytes);

// The GNU build id of a program or library (64-bit ELF in this machine's byte order), in
// hexadecimal; empty: linked without one. Pure. kInvalidArgument: not such an ELF
// file, or its loaded part is truncated.
Result<std::string> ElfBuildId(std::string_view bytes);

// The build that `executable` belongs to, as 32 hexadecimal digits: a hash over the names of its
// files, the contents of the Python package, and the linker's build ids of programs and libraries,
// which survive strip. Takes about 1 ms. The error is one sentence about a missing or truncated
// file.
Result<std::string> InstalledBuildId(const std::string& executable);

enum class Packing { kTar, kGzip };

struct Bundle {
  std::string bytes;
  std::string sha256;  // of the bytes, in hexadecimal
};

// The tar command that writes the bundle to stdout: bin/hvdrun, bin/py-spy if present,
// lib/libhvd*.so and lib/hvdrun/python/horovod, of the tree or wheel that `executable` belongs to.
// The bytes depend only on the contents of these files. GNU tar; no shell.
Result<std::vector<std::string>> BundleCommand(const std::string& executable, Packing packing);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_BUNDLE_H_
