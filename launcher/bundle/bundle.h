// The bundle: what another host needs of this installation (hvdrun, the runtime with its plug-ins,
// the Python package), as one archive, and the id that tells one build from another. Reads files;
// nothing is kept between calls; any thread.
#ifndef HVD_LAUNCHER_BUNDLE_BUNDLE_H_
#define HVD_LAUNCHER_BUNDLE_BUNDLE_H_

#include <string>
#include <string_view>

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

// bin/hvdrun, lib/libhvd*.so and lib/hvdrun/python/horovod, programs without what only debuggers
// read. Takes a second.
Result<Bundle> MakeBundle(const std::string& executable, Packing packing);

}  // namespace hvd

#endif  // HVD_LAUNCHER_BUNDLE_BUNDLE_H_
