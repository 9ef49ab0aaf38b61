// The share of one agent when several share a machine.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_MACHINE_PART_H_
#define HVD_LAUNCHER_AGENT_WORKERS_MACHINE_PART_H_

#include <cstddef>
#include <cstdint>
#include <vector>

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

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_MACHINE_PART_H_
