// The options of a backend for the memory of GPUs, and its abilities beyond those of a Backend: the
// seam between libhvd.so and libhvd_cuda.so.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_CUDA_BACKEND_OPTIONS_H_
#define HVD_RUNTIME_BACKENDS_CUDA_CUDA_BACKEND_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/backends/backend.h"
#include "runtime/base/clock.h"
#include "runtime/device/shared_heap.h"
#include "runtime/net/kv_store.h"

namespace hvd {

// All that is pointed to outlives the backend.
struct CudaBackendOptions {
  uint32_t rank = 0;  // in the world
  Backend* host = nullptr;
  // Ranks of the world are on several hosts, which agree about one order of all process sets.
  bool several_hosts = false;
  SharedHeap* heap = nullptr;
  SharedMemoryMap* peer_memory = nullptr;
  KvStore* store = nullptr;  // of this generation
  const Clock* clock = nullptr;
  std::function<void()> wake_peers;                      // of this host
  std::function<void(const std::string& sentence)> say;  // to the user, as a warning
  // Why NCCL is not to be used; "": it is, where it can.
  std::string without_nccl;
  // Added to where a GPU is: processes that NCCL is made to take for different hosts differ.
  uint64_t place_salt = 0;
  // Of a communicator's start, and until NCCL has given a group of calls to the GPU.
  Duration start_limit = std::chrono::seconds(60);
  // An operation by NCCL is done only when the GPU is, so that its error is that of a peer's death.
  bool waits_for_gpu = false;
  // NCCL's own memory, registered, for tensors that are packed; the same on all ranks.
  bool registers_buffers = false;
  // Of memory in which small tensors are packed, for each process set; the same on all ranks.
  size_t packing_bytes = size_t{8} << 20;
  // Batches of small tensors that come again are launched as CUDA graphs, where all ranks want it.
  bool keeps_graphs = false;
  // A profiler sees operations as ranges (NVTX).
  bool ranges = false;
  // At the end of a world: of a communicator's close, and before that of what the GPU was given,
  // which other ranks may be waiting for.
  Duration close_limit = std::chrono::seconds(2);
  Duration drain_limit = std::chrono::seconds(60);
  // Of the aborts of all communicators. NCCL may never come back from one, and nothing can take its
  // thread away: then `end_process` ends this process, so that the job goes on without it, or ends.
  Duration abort_limit = std::chrono::seconds(30);
  std::function<void(const std::string& why)> end_process;

  // An operation of this group needs an agreement of the hosts.
  bool NeedsAgreement(const Group& group) const {
    return !group.on_one_host() || (several_hosts && group.size() > 1);
  }
};

class DeviceBackend : public Backend {
 public:
  // Looks for errors that no call has told yet, such as the end of another member, and aborts what
  // has one: for the runtime thread, again and again.
  virtual void Watch() = 0;
  // This rank leaves the world, and nothing is in flight: the devices' work is done, and the
  // communicators are closed, each within its limit. After an Abort: at once.
  virtual void Leave() = 0;
  // Some communicator of NCCL was made.
  virtual bool UsesNccl() const = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CUDA_BACKEND_OPTIONS_H_
