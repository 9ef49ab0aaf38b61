// What the ranks' PyTorch flight recorders add to a verdict: the collective that does not end, the
// ranks that have not enqueued it, and those that enqueued another operation or shape under its
// sequence number. Pure.
#ifndef HVD_LAUNCHER_STALL_VERDICT_FLIGHT_VERDICT_H_
#define HVD_LAUNCHER_STALL_VERDICT_FLIGHT_VERDICT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launcher/wire/rank_facts.h"

namespace hvd {

// Lines in the format of Verdict::details; empty: no unfinished operation is recorded. `records`:
// at most one per rank.
std::string ExplainFlight(const std::vector<FlightRecord>& records, uint32_t size);

// A key of the group, equal on all its ranks and unique.
std::string KeyOf(const FlightGroup& group);
// By KeyOf: the first collective of each group that is unfinished on some rank.
std::map<std::string, uint64_t> OpenCollectives(const std::vector<FlightRecord>& records);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_FLIGHT_VERDICT_H_
