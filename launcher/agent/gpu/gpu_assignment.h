// Which GPU belongs to which rank of a host. Pure.
#ifndef HVD_LAUNCHER_AGENT_GPU_GPU_ASSIGNMENT_H_
#define HVD_LAUNCHER_AGENT_GPU_GPU_ASSIGNMENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/gpu/gpu_devices.h"

namespace hvd {

// The GPUs that a program with this CUDA_VISIBLE_DEVICES sees, as entries of such a list and in its
// order; without the variable all of them, by number.
std::vector<std::string> VisibleGpus(const std::optional<std::string>& visible,
                                     const std::vector<GpuDevice>& devices);

// The NUMA node of each entry; -1: not known, as for an instance of a divided GPU (MIG).
std::vector<int> NodesOfGpus(const std::vector<std::string>& gpus,
                             const std::vector<GpuDevice>& devices);

// Gives each worker of an agent one GPU, and takes it back.
class GpuAssignment {
 public:
  GpuAssignment() = default;
  // `nodes`: of NUMA, for each of them, where workers are to have GPUs near their cores.
  explicit GpuAssignment(std::vector<std::string> gpus, std::vector<int> nodes = {})
      : gpus_(std::move(gpus)), nodes_(std::move(nodes)) {}

  // Of those that the fewest have, one at a node of `near` (those of the worker's cores; empty: it
  // is not kept on any), then that of its local rank, then the first: so a worker that replaces
  // another gets the GPU that is free, whichever local rank it has. Empty: there are none.
  std::string Take(uint32_t slot, uint32_t local_rank, const std::vector<int>& near = {});
  // The slot's worker has ended.
  void GiveBack(uint32_t slot) { taken_.erase(slot); }

  size_t count() const { return gpus_.size(); }

 private:
  size_t WorkersOn(size_t gpu) const;
  bool IsFar(size_t gpu, const std::vector<int>& near) const;

  std::vector<std::string> gpus_;
  std::vector<int> nodes_;            // of them; or empty
  std::map<uint32_t, size_t> taken_;  // slot -> its place in gpus_
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_GPU_GPU_ASSIGNMENT_H_
