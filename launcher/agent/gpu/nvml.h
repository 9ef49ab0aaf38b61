// NVIDIA's management library (NVML, libnvidia-ml.so.1, part of the driver), as a source of facts
// about this host's GPUs. Loaded at run time; not needed for the build. Calls may hang with a
// faulty GPU: use it in a process that can be killed.
#ifndef HVD_LAUNCHER_AGENT_GPU_NVML_H_
#define HVD_LAUNCHER_AGENT_GPU_NVML_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hvd {

// Nothing: not reported by the GPU or the library.
struct GpuState {
  std::string name;  // "NVIDIA H200"
  uint64_t memory_mib = 0;
  // Uncorrected errors of its memory since the driver was loaded.
  std::optional<uint64_t> ecc_errors;
  bool needs_reset = false;                    // the next reset will replace rows of memory
  bool broken_memory = false;                  // a row could not be replaced
  std::vector<std::string> slowed;             // "heat", "power": why its clocks are low now
  std::vector<uint32_t> processes;             // compute processes on it
  bool prohibited = false, exclusive = false;  // compute mode
  bool divided = false;                        // into instances (MIG)
};

struct GpuLink {
  uint32_t from = 0, to = 0;
  std::string kind;  // "NVLink", "PCI switch", "host bridge", "NUMA node" or "between sockets"
};

struct GpuReport {
  std::string driver;  // "580.65.06"
  std::string cuda;    // the newest CUDA that the driver runs: "13.0"
  std::vector<GpuState> gpus;
  std::vector<GpuLink> links;  // of each pair
  std::string trouble;         // why data is missing
};

GpuReport AskNvml(const char* library = "libnvidia-ml.so.1");

// The report as facts of the examination, "key=value", the last of them "gpu.said=1". Pure.
std::vector<std::string> GpuFacts(const GpuReport& report);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_GPU_NVML_H_
