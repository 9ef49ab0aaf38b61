// Detects the MPI implementation from the output of `mpirun --version`. Pure.
#ifndef HVD_LAUNCHER_EXTERNAL_MPI_MPI_FLAVOR_H_
#define HVD_LAUNCHER_EXTERNAL_MPI_MPI_FLAVOR_H_

#include <optional>
#include <string>

namespace hvd {

enum class MpiFlavor { kOpenMpi, kSpectrum, kMpich, kIntel };

struct MpiVersion {
  MpiFlavor flavor = MpiFlavor::kOpenMpi;
  int major = 0;     // 0: not known
  std::string name;  // "Open MPI 4.1.4"
};

// Nothing for an unknown MPI.
std::optional<MpiVersion> ReadMpiVersion(const std::string& printed);

// The argument that mpirun rejected as unknown, from its output; empty: none.
std::string UnknownArgument(const std::string& printed);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_MPI_MPI_FLAVOR_H_
