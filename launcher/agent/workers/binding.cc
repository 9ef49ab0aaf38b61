#include "launcher/agent/workers/binding.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr int kMaxCpu = 65'536;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int NumberIn(const std::string& path) { return ParseWhole<int>(FirstLine(path)).value_or(0); }

std::vector<int> AllowedNumbers() {
  std::vector<unsigned long> mask(kMaxCpu / (8 * sizeof(unsigned long)));
  long bytes = ::syscall(SYS_sched_getaffinity, 0, mask.size() * sizeof(mask[0]), mask.data());
  std::vector<int> numbers;
  constexpr int kBits = 8 * sizeof(unsigned long);
  for (int cpu = 0; cpu < bytes * 8; ++cpu) {
    if ((mask[static_cast<size_t>(cpu / kBits)] >> (cpu % kBits)) & 1U) numbers.push_back(cpu);
  }
  return numbers;
}

// CPU to NUMA node; empty if the machine has no such folder.
std::map<int, int> Nodes(const std::string& sys) {
  std::map<int, int> node_of;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(sys + "/devices/system/node", error)) {
    std::string name = entry.path().filename();
    if (!name.starts_with("node")) continue;
    const auto node = ParseWhole<int>(std::string_view(name).substr(4));
    if (!node) continue;
    for (int cpu : ParseCpuList(FirstLine(entry.path() / "cpulist"))) node_of[cpu] = *node;
  }
  return node_of;
}

// Groups of CPUs that belong together, in order.
template <typename Key>
std::vector<std::vector<int>> Groups(const std::vector<Cpu>& cpus, Key key) {
  std::map<decltype(key(cpus[0])), std::vector<int>> groups;
  for (const Cpu& cpu : cpus) groups[key(cpu)].push_back(cpu.number);
  std::vector<std::vector<int>> list;
  for (auto& [k, group] : groups) list.push_back(std::move(group));
  return list;
}

std::vector<std::vector<int>> BesideGpus(const std::vector<Cpu>& cpus,
                                         const std::vector<int>& gpu_nodes, uint32_t local_size) {
  std::vector<std::vector<int>> bound(local_size);
  for (size_t rank = 0; rank < local_size && !gpu_nodes.empty(); ++rank) {
    const int node = gpu_nodes[rank % gpu_nodes.size()];
    for (const Cpu& cpu : cpus) {
      if (cpu.node == node) bound[rank].push_back(cpu.number);
    }
  }
  return bound;
}

}  // namespace

std::vector<Cpu> AllowedCpus() { return DescribeCpus(AllowedNumbers(), "/sys"); }

std::vector<Cpu> DescribeCpus(const std::vector<int>& numbers, const std::string& sys) {
  std::map<int, int> node_of = Nodes(sys);
  std::vector<Cpu> cpus;
  for (int number : numbers) {
    std::string topology = Format("{}/devices/system/cpu/cpu{}/topology/", sys, number);
    auto node = node_of.find(number);
    // Without a known topology each CPU counts as a core.
    bool known = std::filesystem::exists(topology + "core_id");
    cpus.push_back({number, node == node_of.end() ? 0 : node->second,
                    NumberIn(topology + "physical_package_id"),
                    known ? NumberIn(topology + "core_id") : number});
  }
  return cpus;
}

std::vector<int> ParseCpuList(const std::string& text) {
  std::vector<int> cpus;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int first = 0;
    auto [after, error] = std::from_chars(at, end, first);
    if (error != std::errc() || first < 0 || first >= kMaxCpu) return {};
    int last = first;
    at = after;
    if (at < end && *at == '-') {
      auto [after_last, last_error] = std::from_chars(at + 1, end, last);
      if (last_error != std::errc() || last < first || last >= kMaxCpu) return {};
      at = after_last;
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at < end && *at != ',') return {};
    ++at;
  }
  return cpus;
}

std::string CpuListText(std::vector<int> cpus) {
  std::sort(cpus.begin(), cpus.end());
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (last > i) text += Format("-{}", cpus[last]);
    i = last + 1;
  }
  return text;
}

std::vector<std::vector<int>> BindRanks(BindTo bind_to, std::vector<Cpu> cpus, uint32_t local_size,
                                        const std::vector<int>& gpu_nodes) {
  std::vector<std::vector<int>> bound(local_size);
  if (bind_to == BindTo::kNone || cpus.empty()) return bound;
  if (bind_to == BindTo::kGpu) return BesideGpus(cpus, gpu_nodes, local_size);
  auto by_node = [](const Cpu& cpu) { return cpu.node; };
  auto by_core = [](const Cpu& cpu) { return std::tuple(cpu.node, cpu.package, cpu.core); };
  std::vector<std::vector<int>> parts =
      bind_to == BindTo::kNuma ? Groups(cpus, by_node) : Groups(cpus, by_core);
  if (bind_to == BindTo::kCore && parts.size() < local_size) {
    std::vector<std::vector<int>> threads;
    for (const auto& core : parts) {
      for (int cpu : core) threads.push_back({cpu});
    }
    parts = std::move(threads);
  }
  for (size_t rank = 0; rank < local_size; ++rank) {
    size_t begin = rank * parts.size() / local_size;
    size_t end = std::max(begin + 1, (rank + 1) * parts.size() / local_size);
    // A rank stays on one node; cores are shared out.
    if (bind_to == BindTo::kNuma) end = begin + 1;
    for (size_t part = begin; part < end; ++part)
      bound[rank].insert(bound[rank].end(), parts[part].begin(), parts[part].end());
    std::sort(bound[rank].begin(), bound[rank].end());
  }
  return bound;
}

std::vector<uint32_t> CoreShares(const std::vector<std::vector<int>>& bound) {
  std::vector<uint32_t> shares;
  std::map<std::vector<int>, size_t> sharers;
  for (const auto& cpus : bound) ++sharers[cpus];
  for (const auto& cpus : bound) {
    size_t share = cpus.empty() ? 0 : std::max<size_t>(1, cpus.size() / sharers[cpus]);
    shares.push_back(static_cast<uint32_t>(share));
  }
  return shares;
}

}  // namespace hvd
