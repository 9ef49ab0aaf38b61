// The names of this machine, and its resources.
#ifndef HVD_DISCOVERY_THIS_MACHINE_H_
#define HVD_DISCOVERY_THIS_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

std::string HostName();

// True for localhost, this machine's name, and every name or address of one of its interfaces.
bool IsThisMachine(const std::string& name);

// The GPUs whose device nodes (nvidia0, nvidia1, ...) are in this folder, limited by
// CUDA_VISIBLE_DEVICES: a list that ends at its first negative entry; not set: all.
uint32_t CountGpus(const std::string& folder, const std::optional<std::string>& visible);

// The entries of a CUDA_VISIBLE_DEVICES, numbers and identifiers, up to the first that is empty or
// negative, as CUDA reads it. Pure.
std::vector<std::string> ListedGpus(std::string_view visible);

// All online CPUs, including those outside this process's affinity; at least 1.
uint32_t OnlineCpus();

// One per GPU allowed by CUDA_VISIBLE_DEVICES; 0: none.
uint32_t GpuSlots();

// One per core that this process may use, within the CPU quota of its cgroups.
uint32_t CoreSlots();

// One per GPU, else one per core that this process may use, within the CPU quota of its cgroups.
uint32_t DefaultSlots();

}  // namespace hvd

#endif  // HVD_DISCOVERY_THIS_MACHINE_H_
