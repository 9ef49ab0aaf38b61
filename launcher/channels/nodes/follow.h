// Runs on every node except node 0 (README): dials node 0, runs its order in a shell, ends with the
// job. Blocks; main thread.
#ifndef HVD_LAUNCHER_CHANNELS_NODES_FOLLOW_H_
#define HVD_LAUNCHER_CHANNELS_NODES_FOLLOW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/base/clock.h"

namespace hvd {

struct FollowOptions {
  std::string leader;  // a name or an address
  uint16_t port = 0;
  std::string key;    // of the group
  uint32_t node = 0;  // or an id of its own (node_numbers.h)
  std::string name;   // of this node, for messages
  // Whether this machine turns out to be the leader's; empty: it is known not to be.
  std::function<bool()> leads;
  Duration patience;  // how long to wait for node 0
  std::function<void(const std::string& sentence)> say;
};

// Returns the exit code of the job; 1 if node 0 does not appear in time, 128 + n after signal n.
// Nothing: this machine leads.
std::optional<int> FollowNode(FollowOptions options);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_NODES_FOLLOW_H_
