#include "launcher/agent/gpu/gpu_assignment.h"

#include <algorithm>
#include <tuple>

#include "discovery/this_machine.h"
#include "runtime/base/text/number_text.h"

namespace hvd {

std::vector<std::string> VisibleGpus(const std::optional<std::string>& visible,
                                     const std::vector<GpuDevice>& devices) {
  if (visible) return ListedGpus(*visible);
  std::vector<std::string> all;
  for (size_t i = 0; i < devices.size(); ++i) all.push_back(std::to_string(i));
  return all;
}

std::vector<int> NodesOfGpus(const std::vector<std::string>& gpus,
                             const std::vector<GpuDevice>& devices) {
  std::vector<int> nodes;
  for (const std::string& gpu : gpus) {
    const std::optional<size_t> number = ParseWhole<size_t>(gpu);
    const auto device =
        number ? devices.begin() + static_cast<ptrdiff_t>(std::min(*number, devices.size()))
               // CUDA accepts the beginning of an identifier.
               : std::ranges::find_if(devices, [&](const GpuDevice& one) {
                   return !gpu.empty() && one.uuid.starts_with(gpu);
                 });
    nodes.push_back(device == devices.end() ? -1 : device->node);
  }
  return nodes;
}

size_t GpuAssignment::WorkersOn(size_t gpu) const {
  return static_cast<size_t>(
      std::ranges::count_if(taken_, [&](const auto& entry) { return entry.second == gpu; }));
}

// A GPU whose node is unknown is far from nothing.
bool GpuAssignment::IsFar(size_t gpu, const std::vector<int>& near) const {
  if (nodes_.empty() || near.empty() || nodes_[gpu] < 0) return false;
  return std::ranges::find(near, nodes_[gpu]) == near.end();
}

std::string GpuAssignment::Acquire(uint32_t slot, uint32_t local_rank,
                                   const std::vector<int>& near) {
  if (gpus_.empty()) return "";
  const size_t own = local_rank % gpus_.size();
  const auto cost = [&](size_t gpu) {
    return std::tuple(WorkersOn(gpu), IsFar(gpu, near), gpu != own, gpu);
  };
  size_t chosen = 0;
  for (size_t gpu = 1; gpu < gpus_.size(); ++gpu) {
    if (cost(gpu) < cost(chosen)) chosen = gpu;
  }
  taken_[slot] = chosen;
  return gpus_[chosen];
}

}  // namespace hvd
