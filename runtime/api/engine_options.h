// The settings of the engine from the environment.
#ifndef HVD_RUNTIME_API_ENGINE_OPTIONS_H_
#define HVD_RUNTIME_API_ENGINE_OPTIONS_H_

#include <cstdint>
#include <optional>

#include "runtime/backends/cuda/cuda_backend_options.h"
#include "runtime/backends/sum_cut.h"
#include "runtime/base/status.h"
#include "runtime/core/engine.h"

namespace hvd {

// kInvalidArgument with the variable and its value if one cannot be parsed. The wait policy depends
// on the world and is not set here.
Result<EngineOptions> EngineOptionsFromEnv();

// Settings for communication between hosts.
struct HostsSettings {
  uint64_t fusion_bytes = 128 << 20;            // HOROVOD_FUSION_THRESHOLD
  Duration timeout = std::chrono::seconds(30);  // HOROVOD_GLOO_TIMEOUT_SECONDS
  SumCut cut = {};                              // HVD_INTER_HOST_PIECE_KIB, _PIECES, ...
};
Result<HostsSettings> HostsSettingsFromEnv();

// Settings for communication within a host. The runtime chooses those that are not set.
struct OneHostSettings {
  uint32_t chunk_kib = 0;                 // HVD_CHUNK_KIB; 0: not set
  std::optional<uint32_t> spins, yields;  // HVD_WAIT_SPINS, HVD_WAIT_YIELDS
  std::optional<uint64_t> ring_from;      // bytes: HVD_RING_FROM_KIB
  bool tuned = false;  // HOROVOD_AUTOTUNE: the agent may change them while the job runs
};
Result<OneHostSettings> OneHostSettingsFromEnv();

// The settings for GPU tensors from the environment: HOROVOD_GPU_STAGED (1: through host memory),
// HOROVOD_GPU_REGISTERED_BUFFERS (1: pack small tensors in buffers registered with NCCL),
// HOROVOD_GPU_GRAPHS (1: launch repeated batches of these as CUDA graphs), HOROVOD_NVTX_RANGES (1:
// emit NVTX ranges for operations), HOROVOD_ENABLE_ASYNC_COMPLETION (0: an NCCL operation is done
// only when the GPU has finished it), and NCCL's own NCCL_HOSTID, which makes processes that share
// a GPU appear as ranks of different hosts.
void AddDeviceSettingsFromEnv(CudaBackendOptions* options);

// HOROVOD_MPI_THREADS_DISABLE: all MPI calls are made from one thread.
Result<bool> MpiThreadsDisabled();

// Number of cores that the ranks of this host may use together.
uint32_t AllowedCores();

// Size of a core's L2 cache in bytes; 0 if unknown.
size_t SecondLevelCacheBytes();

}  // namespace hvd

#endif  // HVD_RUNTIME_API_ENGINE_OPTIONS_H_
