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

// kInvalidArgument with the variable and its value where one cannot be read. The wait policy is
// left to the world.
Result<EngineOptions> EngineOptionsFromEnv();

// The settings of the work between hosts.
struct HostsSettings {
  uint64_t fusion_bytes = 128 << 20;            // HOROVOD_FUSION_THRESHOLD
  Duration timeout = std::chrono::seconds(30);  // HOROVOD_GLOO_TIMEOUT_SECONDS
  SumCut cut = {};                              // HVD_INTER_HOST_PIECE_KIB, _PIECES, ...
};
Result<HostsSettings> HostsSettingsFromEnv();

// The settings of the work inside a host. The runtime chooses those that are not given.
struct OneHostSettings {
  uint32_t chunk_kib = 0;                 // HVD_CHUNK_KIB; 0: not given
  std::optional<uint32_t> spins, yields;  // HVD_WAIT_SPINS, HVD_WAIT_YIELDS
  std::optional<uint64_t> ring_from;      // bytes: HVD_RING_FROM_KIB
  bool tuned = false;  // HOROVOD_AUTOTUNE: the agent may change them while the job runs
};
Result<OneHostSettings> OneHostSettingsFromEnv();

// The settings for tensors on GPUs from the environment: HOROVOD_GPU_STAGED (1: they go through the
// memory of the host), HOROVOD_GPU_REGISTERED_BUFFERS (1: small ones are packed in memory that is
// registered with NCCL), HOROVOD_GPU_GRAPHS (1: batches of these that come again are launched as
// CUDA graphs), HOROVOD_NVTX_RANGES (1: a profiler sees operations as ranges),
// HOROVOD_ENABLE_ASYNC_COMPLETION (0: an operation by NCCL is done only when the GPU is), and
// NCCL's own NCCL_HOSTID, by which processes that share a GPU pass for ranks of different hosts.
void AddDeviceSettingsFromEnv(CudaBackendOptions* options);

// HOROVOD_MPI_THREADS_DISABLE: one thread makes all calls to MPI.
Result<bool> MpiThreadsDisabled();

// The cores that the ranks of this host may use together.
uint32_t AllowedCores();

// Bytes of the second-level cache of a core; 0 where the system does not say.
size_t SecondLevelCacheBytes();

}  // namespace hvd

#endif  // HVD_RUNTIME_API_ENGINE_OPTIONS_H_
