#include "runtime/backends/gloo/allreduce_way.h"

namespace hvd {
namespace {

// The most that a leader receives in one step; measured on loopback with 2, 3 and 4 leaders.
constexpr size_t kMostReceived = 256 * 1024;
// Beyond so many leaders everybody's adding everything costs more than a second exchange.
constexpr size_t kMostDirectLeaders = 16;

}  // namespace

AllreduceAlgorithm ChooseAllreduce(size_t bytes, size_t leaders) {
  const bool direct =
      leaders <= kMostDirectLeaders && (leaders <= 1 || bytes <= kMostReceived / (leaders - 1));
  return direct ? AllreduceAlgorithm::kDirect : AllreduceAlgorithm::kSliced;
}

}  // namespace hvd
