// Finds the Cross of a job of several hosts: libhvd_gloo.so, loaded when first needed, from the folder in which libhvd.so
// lies. Only jobs of several hosts need Gloo.
#ifndef HVD_RUNTIME_BACKENDS_CROSS_LOADER_H_
#define HVD_RUNTIME_BACKENDS_CROSS_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/cross.h"
#include "runtime/net/directory.h"
#include "runtime/net/layout.h"

namespace hvd {

struct CrossOptions {
  uint32_t rank = 0;    // in the world
  uint64_t epoch = 0;   // peers of another epoch are refused
  std::string job_key;  // the secret that every process of the job has
  ListenHints listen;
  Duration connect_timeout = std::chrono::seconds(30);
  // How long a waiting thread looks without sleeping; zero where threads outnumber cores.
  Duration spin = Duration::zero();
};

// Listens, and puts its addresses into `directory`, which must outlive the Cross. Peers are connected when first used.
// kUnsupported with the reason when the library cannot be loaded. `folder`: another place to look, for tests.
Result<std::unique_ptr<Cross>> OpenCross(const CrossOptions& options, Directory& directory,
                                         const std::string& folder = "");

// True if the library is there and can be loaded.
bool CanOpenCross();

// What libhvd_gloo.so exports as "hvd_cross_create"; `status` gets the reason when the answer is null. Both sides are
// built together, so C++ types pass.
using CrossCreate = Cross* (*)(const CrossOptions* options, Directory* directory, Status* status);
inline constexpr char kCrossCreateName[] = "hvd_cross_create";

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CROSS_LOADER_H_
