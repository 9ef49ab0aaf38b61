// What PyTorch's flight recorders in the ranks of a job add to a verdict: which collective does not
// end, the ranks that have not enqueued it, and those that have enqueued another operation or
// shape under its number. Pure.
#ifndef HVD_LAUNCHER_STALL_VERDICT_FLIGHT_VERDICT_H_
#define HVD_LAUNCHER_STALL_VERDICT_FLIGHT_VERDICT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launcher/wire/rank_facts.h"

namespace hvd {

// Lines as those of Verdict::details; empty: the recorders say nothing about an operation that has
// not ended. `records`: at most one of each rank.
std::string ExplainFlight(const std::vector<FlightRecord>& records, uint32_t size);

// The same on all its ranks, and no other group's.
std::string KeyOf(const FlightGroup& group);
// The first collective of each group that has not ended on some rank, by KeyOf.
std::map<std::string, uint64_t> OpenCollectives(const std::vector<FlightRecord>& records);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_VERDICT_FLIGHT_VERDICT_H_
