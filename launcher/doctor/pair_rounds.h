// The order in which pairs of hosts are measured: in rounds, each host in one pair of a round at
// most, so that no measurement disturbs another at its ends. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_PAIR_ROUNDS_H_
#define HVD_LAUNCHER_DOCTOR_PAIR_ROUNDS_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace hvd {

using HostPair = std::pair<uint32_t, uint32_t>;  // the smaller number first

// The pairs of hosts that prove themselves to each other (connectivity_probe.h): all of them up to
// 16 hosts.
std::vector<HostPair> PairsOf(uint32_t hosts);

// Each pair once.
std::vector<std::vector<HostPair>> RoundsOf(const std::vector<HostPair>& pairs);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_PAIR_ROUNDS_H_
