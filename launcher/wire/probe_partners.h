// Which hosts look for each other before a job starts. Pure.
#ifndef HVD_LAUNCHER_WIRE_PROBE_PARTNERS_H_
#define HVD_LAUNCHER_WIRE_PROBE_PARTNERS_H_

#include <cstdint>
#include <vector>

namespace hvd {

// Up to so many hosts everybody proves everybody, so that it is known which ways need the relay.
inline constexpr uint32_t kMostProvenInPairs = 16;

// The hosts with which `host` proves itself: all others while there are few, else those 1, 2, 4,
// ... numbers away on both sides, so that the work per host grows with the logarithm. Pure;
// symmetric.
std::vector<uint32_t> ProbePartners(uint32_t host, uint32_t hosts);

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_PROBE_PARTNERS_H_
