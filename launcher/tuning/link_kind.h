// The kind of network links from this host to the other hosts of a job, one of the conditions for
// reusing a tuning result. Coarse on purpose: the same cluster must give the same text in each run.
#ifndef HVD_LAUNCHER_TUNING_LINK_KIND_H_
#define HVD_LAUNCHER_TUNING_LINK_KIND_H_

#include <cstdint>
#include <span>
#include <string>

namespace hvd {

// "10 Gbit/s": the next lower common link speed. "unknown" if the kernel has none (0 or less, as
// for virtual interfaces).
std::string SpeedClass(int64_t mbit_per_second);

// The speed class of the fastest of `interfaces`, names as in `folder`: the kernel's
// "/sys/class/net". "loopback" if there are none: all hosts are simulated on this machine.
std::string LinkKind(std::span<const std::string> interfaces, const std::string& folder);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_LINK_KIND_H_
