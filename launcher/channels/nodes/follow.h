// What runs on every node but node 0 (README): dials node 0, has a shell run what it orders, ends
// with the job. Blocks; the main thread.
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
  Duration patience;  // without node 0
  std::function<void(const std::string& sentence)> say;
};

// The exit code: that of the job; 1 where node 0 is not there in time, 128 + n after a signal.
int FollowNode(FollowOptions options);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_NODES_FOLLOW_H_
