// The CPU time that the control groups of this process allow, as a number of CPUs: `docker run
// --cpus`, `resources.limits.cpu` of Kubernetes, CPUQuota of systemd. Beside the affinity mask,
// which such a limit does not change.
#ifndef HVD_RUNTIME_BASE_CPU_QUOTA_H_
#define HVD_RUNTIME_BASE_CPU_QUOTA_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

// The text of a file; empty when it cannot be read.
using SmallFileReader = std::function<std::string(const std::string& path)>;

// The smallest quota on the path from the process's groups (versions 1 and 2) to the roots of their
// mounts, for a process whose files in /proc/PID read like this. Nothing: there is no limit. Pure.
std::optional<double> CpuQuotaOf(std::string_view mountinfo, std::string_view proc_cgroup,
                                 const SmallFileReader& read);

// That of the calling process.
std::optional<double> OwnCpuQuota();

// The number of CPUs that can be busy all the time under both limits; at least 1. A part of a CPU
// does not count: a thread too many is throttled together with all others. Pure.
uint32_t UsableCpus(uint32_t allowed, std::optional<double> quota);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_CPU_QUOTA_H_
