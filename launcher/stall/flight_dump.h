// Parses dumps of PyTorch's flight recorder, reduced to what a verdict needs. Pure.
#ifndef HVD_LAUNCHER_STALL_FLIGHT_DUMP_H_
#define HVD_LAUNCHER_STALL_FLIGHT_DUMP_H_

#include <string_view>
#include <vector>

#include "launcher/wire/rank_facts.h"
#include "runtime/base/status.h"

namespace hvd {

// Limits: entries of one group, and groups of one dump.
inline constexpr size_t kMostFlightEntries = 48;
inline constexpr size_t kMostFlightGroups = 64;

// The groups in which the process has enqueued something, by name. kInvalidArgument if the bytes
// are not a complete dump.
Result<std::vector<FlightGroup>> ParseFlightDump(std::string_view bytes);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_FLIGHT_DUMP_H_
