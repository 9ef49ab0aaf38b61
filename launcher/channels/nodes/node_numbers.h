// Which node a machine is. One that was started with a rank has that number and uses it as its id.
// One without, as under torchrun with a rendezvous, gets a number in the order in which machines
// are met: it calls itself by a random id, the same for all its connections, and keeps its number.
// Another machine takes a number over once its holder has been away for long, as when a lost
// machine of an elastic job is replaced. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_NODES_NODE_NUMBERS_H_
#define HVD_LAUNCHER_CHANNELS_NODES_NODE_NUMBERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

// A machine that comes back dials anew within this time.
inline constexpr Duration kNodeAbsence = std::chrono::seconds(10);

// Ids are above all numbers. Two of a thousand machines have the same one once in 4,000 jobs.
constexpr uint32_t NodeIdOf(uint32_t random) { return random | 0x8000'0000u; }
constexpr bool IsNodeId(uint32_t id) { return id >= 0x8000'0000u; }

// A node that is waited for.
struct WantedNode {
  uint32_t number = 0;
  TimePoint since;
};

class NodeNumbers {
 public:
  // The number of this machine from now on, one of `wanted` if it had none. Nothing: it is not
  // needed now.
  std::optional<uint32_t> Take(uint32_t id, const std::vector<WantedNode>& wanted, TimePoint now);
  bool IsTaken(uint32_t number) const { return ids_.contains(number); }

 private:
  std::map<uint32_t, uint32_t> ids_;  // by number
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_NODES_NODE_NUMBERS_H_
