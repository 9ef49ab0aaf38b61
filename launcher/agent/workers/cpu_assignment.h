// CpuAssignment: the CPUs of each worker of an agent, by slot: those that it is bound to, and its
// share of them. Pure.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_CPU_ASSIGNMENT_H_
#define HVD_LAUNCHER_AGENT_WORKERS_CPU_ASSIGNMENT_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "launcher/agent/environment/worker_env.h"
#include "launcher/agent/workers/binding.h"
#include "launcher/wire/messages.h"

namespace hvd {

class CpuAssignment {
 public:
  CpuAssignment() = default;
  // Divides `cpus` among the slots. `gpu_nodes`: the NUMA nodes of the host's GPUs, as BindRanks
  // takes them. `usable`: how many of `cpus` can be busy all the time (UsableCpus).
  CpuAssignment(BindTo bind_to, std::vector<Cpu> cpus, uint32_t slots, std::vector<int> gpu_nodes,
                uint32_t usable);

  // Appends a slot. The CPUs are divided among all local ranks of `place`'s world, so it may share
  // its CPUs with an earlier slot.
  void Add(const Placement& place);
  // The CPUs that another launcher has chosen for the slot; no effect where hvdrun binds the worker
  // itself, or `cpus` is empty.
  void UseIfUnbound(uint32_t slot, const std::vector<int>& cpus);

  // Empty: the worker is not bound.
  const std::vector<int>& Of(uint32_t slot) const { return bound_[slot]; }
  // The NUMA nodes of these, ascending.
  std::vector<int> NodesOf(uint32_t slot) const;
  WorkerShare ShareOf(uint32_t slot) const;
  // The CPUs that the workers share and that can be busy all the time.
  uint32_t host_cores() const { return std::min(all_cores(), usable_); }
  // All CPUs, whatever the quota.
  uint32_t all_cores() const { return static_cast<uint32_t>(cpus_.size()); }

 private:
  BindTo bind_to_{};
  std::vector<Cpu> cpus_;
  std::vector<int> gpu_nodes_;
  uint32_t usable_ = 0;
  std::vector<std::vector<int>> bound_;  // by slot
  std::vector<uint32_t> shares_;         // by slot
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_CPU_ASSIGNMENT_H_
