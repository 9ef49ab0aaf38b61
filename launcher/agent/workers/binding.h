// Which cores of the host each worker may use. AllowedCpus and DescribeCpus look at the machine;
// the rest is pure.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_BINDING_H_
#define HVD_LAUNCHER_AGENT_WORKERS_BINDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/wire/messages.h"

namespace hvd {

// One logical CPU and where it is. CPUs of one core (hyper-threads) have the same package and core.
struct Cpu {
  int number = 0;
  int node = 0;  // NUMA
  int package = 0, core = 0;

  auto operator<=>(const Cpu&) const = default;
};

// The CPUs that this process may use, which its workers inherit. Empty when the kernel does not
// report them.
std::vector<Cpu> AllowedCpus();
// Where CPUs of these numbers are, by a folder that is as the kernel's /sys.
std::vector<Cpu> DescribeCpus(const std::vector<int>& numbers, const std::string& sys);

// "0-3,8,10-11" as the kernel writes it; a text that is no list is empty.
std::vector<int> ParseCpuList(const std::string& text);
std::string CpuListText(std::vector<int> cpus);

// For each local rank the CPUs it is kept on; empty lists for kNone. kCore: neighbours share out
// the cores evenly, and a core is split or shared only when there are more ranks than cores. kNuma:
// ranks are dealt out to the nodes in blocks. kGpu: local rank r is kept on the node gpu_nodes[r],
// round and round where there are fewer, and nowhere if that has none of `cpus`.
std::vector<std::vector<int>> BindRanks(BindTo bind_to, std::vector<Cpu> cpus, uint32_t local_size,
                                        const std::vector<int>& gpu_nodes = {});

// For each rank its share of the CPUs that it is bound to together with others; 0 for an unbound
// rank.
std::vector<uint32_t> CoreShares(const std::vector<std::vector<int>>& bound);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_BINDING_H_
