// The kind of the links that lead from this host to the other hosts of a job: a part of the
// conditions under which a result of tuning holds. Coarse on purpose: the same cluster has to give
// the same text in each run.
#ifndef HVD_LAUNCHER_TUNING_LINK_KIND_H_
#define HVD_LAUNCHER_TUNING_LINK_KIND_H_

#include <cstdint>
#include <span>
#include <string>

namespace hvd {

// "10 Gbit/s": the usual speed of links that is nearest below. "unknown" where the kernel knows
// none (0 or less, as of virtual interfaces).
std::string SpeedClass(int64_t mbit_per_second);

// The speed class of the fastest of `interfaces`, names as in `folder`: the kernel's
// "/sys/class/net". "loopback" where there are none: all hosts are played by this machine.
std::string LinkKind(std::span<const std::string> interfaces, const std::string& folder);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_LINK_KIND_H_
