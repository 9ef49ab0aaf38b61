// Plan: which rank runs where. A pure function of hosts, slots and the number of processes.
#ifndef HVD_LAUNCHER_WIRE_PLAN_H_
#define HVD_LAUNCHER_WIRE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "discovery/host_slots.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

// One rank's place. "cross" ranks number the hosts that have this local rank.
struct Placement {
  uint32_t rank = 0;
  uint32_t host = 0;  // index into Plan::hosts
  uint32_t local_rank = 0, local_size = 0;
  uint32_t cross_rank = 0, cross_size = 0;

  bool operator==(const Placement&) const = default;
};

struct Plan {
  std::vector<std::string> hosts;  // indices never change, so some may have no rank (final_plan.h)
  std::vector<Placement> ranks;    // by rank
  bool homogeneous = true;         // every host has the same number of ranks

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
  std::vector<Placement> OnHost(uint32_t host) const;
  // The same for every host, by number.
  std::vector<std::vector<Placement>> ByHost() const;
  // The numbers of the hosts that have a rank, in the order of their first ranks.
  std::vector<uint32_t> UsedHosts() const;
  // Runs of the used hosts, renumbered from 0 in that order.
  std::vector<RankRun> Layout() const;
};

// "1 slot", "4 slots"
std::string SlotsText(uint64_t slots);

// The error for too few slots; names the number needed.
Status TooFewSlots(uint32_t num_proc, uint64_t slots);

// Assigns ranks host by host in the given order, up to the slots of each. `hosts` and `slots` have
// equal length, and there are enough slots.
Plan PlaceRanks(std::vector<std::string> hosts, const std::vector<uint32_t>& slots,
                uint32_t num_proc);

// The plan of ranks placed by another launcher: `host_of_rank` has the host number of each rank.
// Local ranks are in the order of ranks.
Plan PlanOfPlaces(std::vector<std::string> hosts, const std::vector<uint32_t>& host_of_rank);

// Display names of hosts; with the ssh port if one name is used for two hosts.
std::vector<std::string> NamesOf(const std::vector<HostSlots>& hosts);

// Requires known slots. Merges entries of the same host; drops hosts that get no rank.
Result<Plan> MakePlan(const std::vector<HostSlots>& hosts, uint32_t num_proc);

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_PLAN_H_
