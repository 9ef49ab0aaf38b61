// Runs on every node except node 0 (README): dials node 0, runs its order in a shell, ends with the
// job. Blocks; main thread.
#ifndef HVD_LAUNCHER_CHANNELS_NODES_FOLLOW_H_
#define HVD_LAUNCHER_CHANNELS_NODES_FOLLOW_H_

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/clock.h"

namespace hvd {

struct FollowOptions {
  std::string leader;  // a name or an address
  uint16_t port = 0;
  std::string key;  // of the group
  uint32_t node = 0;
  Duration patience;  // how long to wait for node 0
  std::function<void(const std::string& sentence)> say;
};

// Returns the exit code of the job; 1 if node 0 does not appear in time, 128 + n after signal n.
int FollowNode(FollowOptions options);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_NODES_FOLLOW_H_
