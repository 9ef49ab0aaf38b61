// What a rank asks for: one collective on one tensor, in the runtime's own types. The numbers equal those of hvd.h.
#ifndef HVD_RUNTIME_BACKENDS_COLLECTIVE_H_
#define HVD_RUNTIME_BACKENDS_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>

#include "runtime/device/dtype.h"

namespace hvd {

enum class Collective : uint8_t {
  kAllreduce = 0,
  kAllgather = 1,
  kBroadcast = 2,
  kAlltoall = 3,
  kReducescatter = 4,
  kBarrier = 5,
  kJoin = 6,
};

enum class ReduceOp : uint8_t {
  kAverage = 0,
  kSum = 1,
  kAdasum = 2,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
};

// One collective as a backend sees it: checked, and known to be the same on every rank. Owns nothing.
struct CollectiveCall {
  Collective collective = Collective::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kUint8;
  uint32_t root = 0;  // rank in the group, for a broadcast
  size_t count = 0;   // elements
  const void* input = nullptr;
  void* output = nullptr;  // may equal input
  double prescale = 1.0;
  double postscale = 1.0;

  size_t bytes() const { return count * SizeOf(dtype); }
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_COLLECTIVE_H_
