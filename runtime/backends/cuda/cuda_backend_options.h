// The options of a backend for GPU memory, and its functions beyond those of a Backend: the
// interface between libhvd.so and libhvd_cuda.so.
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
  // The world spans several hosts, which agree on one order over all process sets.
  bool several_hosts = false;
  SharedHeap* heap = nullptr;
  SharedMemoryMap* peer_memory = nullptr;
  KvStore* store = nullptr;  // of this generation
  const Clock* clock = nullptr;
  std::function<void()> wake_peers;                       // of this host
  std::function<void(const std::string& sentence)> warn;  // to the user, as a warning
  // Why not to use NCCL; "": use it where possible.
  std::string without_nccl;
  // Added to a GPU's place: differs between processes that NCCL is told to treat as different
  // hosts.
  uint64_t place_salt = 0;
  // For a communicator's start, and for NCCL to give a group of calls to the GPU.
  Duration start_limit = std::chrono::seconds(60);
  // An NCCL operation is done only when the GPU is, so that it gets the error of a peer's death.
  bool waits_for_gpu = false;
  // NCCL's own memory, registered, for packed tensors; the same on all ranks.
  bool registers_buffers = false;
  // Size of the memory in which small tensors are packed, for each process set; the same on all
  // ranks.
  size_t packing_bytes = size_t{8} << 20;
  // Recurring batches of small tensors are launched as CUDA graphs, if set on all ranks.
  bool keeps_graphs = false;
  // Emits NVTX ranges for operations.
  bool ranges = false;
  // At the end of a world: for closing a communicator, and before that for the GPU's work, which
  // other ranks may be waiting for.
  Duration close_limit = std::chrono::seconds(2);
  Duration drain_limit = std::chrono::seconds(60);
  // For the aborts of all communicators. NCCL may never return from one, and its thread cannot be
  // stopped: then `end_process` ends this process, so that the job continues without it, or ends.
  Duration abort_limit = std::chrono::seconds(30);
  std::function<void(const std::string& why)> end_process;

  // Whether an operation of this group needs an agreement of the hosts.
  bool NeedsAgreement(const Group& group) const {
    return !group.on_one_host() || (several_hosts && group.size() > 1);
  }
};

class DeviceBackend : public Backend {
 public:
  // Looks for errors not yet returned by a call, such as the end of another member, and aborts what
  // has one: called repeatedly by the runtime thread.
  virtual void Watch() = 0;
  // This rank leaves the world with nothing in flight: finishes the devices' work and closes the
  // communicators, each within its limit. After an Abort: at once.
  virtual void Leave() = 0;
  // Whether any NCCL communicator was created.
  virtual bool UsesNccl() const = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CUDA_BACKEND_OPTIONS_H_
