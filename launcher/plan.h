// Plan: which rank runs where. A pure function of hosts, slots and the number of processes.
#ifndef HVD_LAUNCHER_PLAN_H_
#define HVD_LAUNCHER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "discovery/host_slots.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

// One rank's place. "cross" numbers the hosts that have a slot of this local rank.
struct Placement {
  uint32_t rank = 0;
  uint32_t host = 0;  // index into Plan::hosts
  uint32_t local_rank = 0, local_size = 0;
  uint32_t cross_rank = 0, cross_size = 0;

  bool operator==(const Placement&) const = default;
};

struct Plan {
  std::vector<std::string> hosts;  // only those that got a rank
  std::vector<Placement> ranks;    // by rank
  bool homogeneous = true;         // every host has the same number of ranks

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
  std::vector<Placement> OnHost(uint32_t host) const;
  std::vector<RankRun> Layout() const;
};

// Ranks are handed out host by host in the given order. Two entries of one host are merged.
Result<Plan> MakePlan(const std::vector<HostSlots>& hosts, uint32_t num_proc);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PLAN_H_
