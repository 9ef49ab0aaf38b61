// Finds the InterHostComm of a job of several hosts: libhvd_gloo.so, loaded when first needed, from
// the folder of libhvd.so. Only jobs of several hosts need Gloo.
#ifndef HVD_RUNTIME_BACKENDS_INTER_HOST_LOADER_H_
#define HVD_RUNTIME_BACKENDS_INTER_HOST_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/net/kv_store.h"
#include "runtime/net/layout.h"

namespace hvd {

struct InterHostOptions {
  uint32_t rank = 0;        // in the world
  uint64_t generation = 0;  // peers of another generation are refused
  std::string job_key;      // the secret shared by the job's processes
  ListenHints listen;
  Duration connect_timeout = std::chrono::seconds(30);
  // How long a waiting thread polls before it sleeps; zero if threads outnumber cores.
  Duration spin = Duration::zero();
};

// Listens, and puts its addresses into `directory`, which must outlive the InterHostComm. Connects
// peers when first used. kUnsupported with the reason if the library cannot be loaded. `folder`:
// where to look instead, for tests.
Result<std::unique_ptr<InterHostComm>> OpenInterHostComm(const InterHostOptions& options,
                                                         KvStore& directory,
                                                         const std::string& folder = "");

// True if the library can be loaded.
bool CanOpenInterHostComm();

// The function that libhvd_gloo.so exports by the name below; `status` gets the reason when the
// answer is null. Both sides are built together, so C++ types pass.
using InterHostCreate = InterHostComm* (*)(const InterHostOptions* options, KvStore* directory,
                                           Status* status);
inline constexpr char kInterHostCreateName[] = "hvd_inter_host_create";

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_INTER_HOST_LOADER_H_
