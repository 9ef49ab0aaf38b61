// Finds the NCCL of this process: the copy mapped by the framework, or else the system's. Two
// copies in one process would each take memory and threads, and share one environment.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_LOADER_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_LOADER_H_

#include <string>

#include "runtime/backends/nccl/nccl_api.h"
#include "runtime/base/status.h"

namespace hvd {

// As from ncclGetVersion since 2.9: 22809 is 2.28.9.
inline constexpr int kOldestNccl = 21403;  // the first with a non-blocking start
inline constexpr int kNcclOfAnotherKind = 30000;

// "2.28.9"; 2804 is 2.8.4.
std::string NcclVersionText(int version);

// Ok, or kUnsupported with the reason: too old, or of an unknown kind.
Status CheckNcclVersion(int version, const std::string& path);

struct NcclLibrary {
  NcclApi api;
  int version = 0;
  std::string path;
  bool shared = false;  // the process had already mapped it
};

// Checks the version first: for a library that is too old, the error says so and not which symbols
// it lacks. kUnsupported names every missing symbol. Missing calls of newer versions
// (HVD_NCCL_OPTIONAL_CALLS) are left null.
Result<NcclLibrary> FillNccl(const std::string& path, const FindSymbol& find);

// `name`: the file name for the loader; a library of that name is never unloaded.
Result<NcclLibrary> LoadNccl(const std::string& name = "libnccl.so.2");

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_LOADER_H_
