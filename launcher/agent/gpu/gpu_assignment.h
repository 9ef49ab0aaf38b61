// Assigns GPUs to the ranks of a host. Pure.
#ifndef HVD_LAUNCHER_AGENT_GPU_GPU_ASSIGNMENT_H_
#define HVD_LAUNCHER_AGENT_GPU_GPU_ASSIGNMENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/gpu/gpu_devices.h"

namespace hvd {

// The GPUs visible with this CUDA_VISIBLE_DEVICES, as entries of such a list in its order; without
// the variable all, by number.
std::vector<std::string> VisibleGpus(const std::optional<std::string>& visible,
                                     const std::vector<GpuDevice>& devices);

// The NUMA node of each entry; -1: unknown, as for a MIG instance.
std::vector<int> NodesOfGpus(const std::vector<std::string>& gpus,
                             const std::vector<GpuDevice>& devices);

// Assigns one GPU to each worker of an agent, and releases it.
class GpuAssignment {
 public:
  GpuAssignment() = default;
  // `nodes`: NUMA node of each, if workers are to get GPUs near their cores.
  explicit GpuAssignment(std::vector<std::string> gpus, std::vector<int> nodes = {})
      : gpus_(std::move(gpus)), nodes_(std::move(nodes)) {}

  // Acquires one of the least used GPUs: preferably on a node of `near` (nodes of the worker's
  // cores; empty: not bound), then the one of its local rank, then the first. So a replacement
  // worker gets the free GPU, whatever its local rank. Empty: no GPUs.
  std::string Acquire(uint32_t slot, uint32_t local_rank, const std::vector<int>& near = {});
  // Releases the GPU of the slot's worker.
  void GiveBack(uint32_t slot) { taken_.erase(slot); }

  size_t count() const { return gpus_.size(); }

 private:
  size_t WorkersOn(size_t gpu) const;
  bool IsFar(size_t gpu, const std::vector<int>& near) const;

  std::vector<std::string> gpus_;
  std::vector<int> nodes_;            // by GPU; or empty
  std::map<uint32_t, size_t> taken_;  // slot -> index in gpus_
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_GPU_GPU_ASSIGNMENT_H_
