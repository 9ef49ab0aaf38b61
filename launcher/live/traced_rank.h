// A rank of a generation on this host whose trace ring is read. A plain value.
#ifndef HVD_LAUNCHER_LIVE_TRACED_RANK_H_
#define HVD_LAUNCHER_LIVE_TRACED_RANK_H_

#include <cstdint>

namespace hvd {

struct TracedRank {
  uint32_t worker = 0, rank = 0, local_rank = 0;
  int pid = 0;  // of its process
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_TRACED_RANK_H_
