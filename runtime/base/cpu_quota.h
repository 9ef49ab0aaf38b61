// The cgroup CPU limit of this process as a number of CPUs: `docker run --cpus`,
// `resources.limits.cpu` of Kubernetes, CPUQuota of systemd. Such a limit does not show in the
// affinity mask.
#ifndef HVD_RUNTIME_BASE_CPU_QUOTA_H_
#define HVD_RUNTIME_BASE_CPU_QUOTA_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

// The text of a file; empty if it cannot be read.
using SmallFileReader = std::function<std::string(const std::string& path)>;

// The smallest quota on the path from the process's cgroups (v1 and v2) to the roots of their
// mounts, given the contents of its /proc/PID/mountinfo and cgroup. nullopt: no limit. Pure.
std::optional<double> CpuQuotaOf(std::string_view mountinfo, std::string_view proc_cgroup,
                                 const SmallFileReader& read);

// The quota of the calling process.
std::optional<double> OwnCpuQuota();

// The number of CPUs that can be fully busy under both limits; at least 1. A fraction of a CPU does
// not count: one thread too many would get all threads throttled. Pure.
uint32_t UsableCpus(uint32_t allowed, std::optional<double> quota);

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_CPU_QUOTA_H_
