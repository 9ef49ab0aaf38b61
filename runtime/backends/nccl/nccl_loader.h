// Finds the NCCL of this process: the copy that the framework has mapped, or else the system's. Two
// copies in one process would each take memory and threads, and find each other's environment.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_LOADER_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_LOADER_H_

#include <string>

#include "runtime/backends/nccl/nccl_api.h"
#include "runtime/base/status.h"

namespace hvd {

// As ncclGetVersion has them from 2.9 on: 22809 is 2.28.9.
inline constexpr int kOldestNccl = 21403;  // the first that begins without blocking
inline constexpr int kNcclOfAnotherKind = 30000;

// "2.28.9"; 2804 is 2.8.4.
std::string NcclVersionText(int version);

// Ok, or kUnsupported with the reason: it is too old, or of a kind that is not known here.
Status CheckNcclVersion(int version, const std::string& path);

struct NcclLibrary {
  NcclApi api;
  int version = 0;
  std::string path;
  bool shared = false;  // the process had mapped it before
};

// Version first: a library that is too old says so, and not which symbols it lacks. kUnsupported
// names every symbol that is missing. A call that only newer versions have
// (HVD_NCCL_OPTIONAL_CALLS) is left null where it is missing.
Result<NcclLibrary> FillNccl(const std::string& path, const FindSymbol& find);

// `name`: the file name for the loader; a library of that name is never unloaded.
Result<NcclLibrary> LoadNccl(const std::string& name = "libnccl.so.2");

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_LOADER_H_
