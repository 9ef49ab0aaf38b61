// The bundle: the part of this installation that another host needs (hvdrun, the runtime with its
// plug-ins, the Python package), as one archive, and the id that tells one build from another.
// Reads files; nothing is kept between calls; any thread.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_BUNDLE_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_BUNDLE_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

// The build that `executable` belongs to, as 32 hexadecimal digits: a hash over the names of its
// files, the contents of the Python package, and the names that the linker gave to programs and
// libraries (their build ids, which survive strip). Costs a millisecond. A sentence when a file is
// missing or cut off.
Result<std::string> InstalledBuildId(const std::string& executable);

enum class Packing { kTar, kGzip };

struct Bundle {
  std::string bytes;
  std::string sha256;  // of the bytes, in hexadecimal
};

// The tar that prints the bundle: bin/hvdrun, bin/py-spy if it lies beside that, lib/libhvd*.so and
// lib/hvdrun/python/horovod, of the tree or wheel that `executable` belongs to. The bytes depend on
// the contents of these files alone. GNU tar; no shell.
Result<std::vector<std::string>> BundleCommand(const std::string& executable, Packing packing);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_BUNDLE_H_
