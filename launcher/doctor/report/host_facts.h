// HostFacts: the facts of a host's examination (host_inspection.h), parsed. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_REPORT_HOST_FACTS_H_
#define HVD_LAUNCHER_DOCTOR_REPORT_HOST_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hvd {

inline constexpr uint64_t kUnlimited = ~uint64_t{0};

// Bytes. Nothing: unknown.
struct DiskFacts {
  std::optional<uint64_t> total, free;
};

struct InterfaceFacts {
  std::string name;
  uint32_t mtu = 0;
  std::vector<std::string> addresses;  // numeric
};

// Faults of a GPU. Empty texts: none.
struct GpuFaults {
  uint64_t ecc_errors = 0;  // uncorrected, since the driver was loaded
  std::string memory;       // "broken", or "reset": a reset will replace rows
  std::string slowed;       // the reason
  std::string mode;         // "prohibited" or "exclusive"
  bool divided = false;
  std::vector<uint32_t> processes;  // compute processes on it
};

// Nothing or empty: unknown.
struct HostFacts {
  bool complete = false;  // the host reported everything within the limit
  std::string kernel, system;
  std::optional<uint64_t> cores;    // by the affinity mask
  std::optional<double> cpu_quota;  // of its control groups, in CPUs; nothing: no limit
  std::optional<uint64_t> memory_total, memory_available;  // bytes
  std::optional<uint64_t> memlock, nofile, nproc;          // memlock in bytes
  std::optional<bool> kill_user_processes, linger;         // nothing: no systemd-logind
  DiskFacts shm, tmp, home, directory_disk;
  std::string directory;  // "ok", or why the working directory cannot be used
  std::vector<InterfaceFacts> interfaces;
  std::vector<std::string> rdma;              // names of devices
  std::vector<std::string> gpus;              // "NVIDIA H200 143771 MiB"
  uint64_t gpu_nodes = 0;                     // /dev/nvidia0, ...
  std::map<uint32_t, GpuFaults> gpu_faults;   // by number
  std::map<std::string, uint32_t> gpu_links;  // link kind -> number of pairs
  std::string gpu_driver, gpu_trouble;
  std::string gpu_cuda;        // the newest CUDA that the driver runs: "13.0"
  std::string torch_cuda;      // CUDA version of PyTorch
  std::string nccl_interface;  // NCCL_SOCKET_IFNAME
  std::string python_path, python_version, python_trouble;
  std::map<std::string, std::string> libraries;  // name, version

  size_t gpu_count() const { return gpus.empty() ? gpu_nodes : gpus.size(); }
};

// Ignores unknown lines, such as those of another version.
HostFacts ReadHostFacts(const std::vector<std::string>& lines);

// The Python to examine: the first word of the command that is a Python, else python3.
std::string InterpreterOf(const std::vector<std::string>& command);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_REPORT_HOST_FACTS_H_
