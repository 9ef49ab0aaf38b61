// Which hosts probe each other before a job starts. Pure.
#ifndef HVD_LAUNCHER_WIRE_PROBE_PARTNERS_H_
#define HVD_LAUNCHER_WIRE_PROBE_PARTNERS_H_

#include <cstdint>
#include <vector>

namespace hvd {

// Up to this number of hosts all pairs are probed, to find all routes that need the relay.
inline constexpr uint32_t kMostProvenInPairs = 16;

// The hosts that `host` probes: all others if there are few, else those at distances 1, 2, 4, ...
// in both directions, so that the work per host is logarithmic. Pure; symmetric.
std::vector<uint32_t> ProbePartners(uint32_t host, uint32_t hosts);

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_PROBE_PARTNERS_H_
