// The GPUs that the workers of an agent may use, by what they are started with.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_WORKER_GPUS_H_
#define HVD_LAUNCHER_AGENT_WORKERS_WORKER_GPUS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/gpu/gpu_assignment.h"
#include "launcher/agent/gpu/gpu_devices.h"
#include "launcher/wire/messages.h"

namespace hvd {

// One of `parts` equal, consecutive parts of the machine's CPUs or GPUs; if there are more agents
// than items, some get the same item. Pure.
template <typename Item>
std::vector<Item> PartOfMachine(const std::vector<Item>& all, uint32_t part, uint32_t parts) {
  const size_t count = all.size();
  if (parts <= 1 || count == 0) return all;
  if (count < parts) return {all[part % count]};
  const auto at = [&](size_t i) { return all.begin() + static_cast<ptrdiff_t>(count * i / parts); };
  return {at(part), at(part + size_t{1})};
}

// Looks at the host, but only where --gpus or --bind-to asks for it.
std::vector<GpuDevice> GpusFor(const StartJob& start);

// The entries of CUDA_VISIBLE_DEVICES that the agent's workers share: those of the list that they
// inherit or that the user gave, else all; of the agent's part of its machine. None where
// neither --gpus nor --bind-to asks for them. Pure.
std::vector<std::string> SharedGpus(const StartJob& start, const std::vector<GpuDevice>& devices);

// Of these, by --gpus: nothing where all workers see all. Pure.
GpuAssignment AssignGpus(const StartJob& start, const std::vector<std::string>& shared,
                         const std::vector<GpuDevice>& devices);

// Whether an environment of "NAME=value" chooses GPUs. Pure.
std::optional<std::string> ChosenGpus(const std::vector<std::string>& environment);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_WORKER_GPUS_H_
