// One collective on one tensor, in the runtime's own types. The numbers equal those of hvd.h.
#ifndef HVD_RUNTIME_BACKENDS_COLLECTIVE_H_
#define HVD_RUNTIME_BACKENDS_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/backends/activity_notes.h"
#include "runtime/backends/agreement.h"
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
  // Not in hvd.h: only the engines use these two; no backend sees them.
  kAddProcessSet = 7,
  kRemoveProcessSet = 8,
};

enum class ReduceOp : uint8_t {
  kAverage = 0,
  kSum = 1,
  kAdasum = 2,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
  // Not in hvd.h: kAverage with HOROVOD_JOIN_AVERAGE `active`. A separate operation, so that ranks
  // with different settings get an error.
  kActiveAverage = 6,
};

// Where a tensor's memory is.
enum class DeviceKind : uint8_t { kHost = 0, kCuda = 1 };

// The divisor of the sum of a group of `size` ranks, of which `active` have not joined.
constexpr uint32_t DivisorOf(ReduceOp op, uint32_t size, uint32_t active) {
  if (op == ReduceOp::kAverage) return size;
  return op == ReduceOp::kActiveAverage ? active : 1;
}

// The members of a process set, as seen by one of them. Immutable while registered.
struct Group {
  int32_t id = 0;               // of the process set; 0 is the world
  std::vector<uint32_t> ranks;  // world ranks of all members, ascending
  uint32_t index = 0;           // of this rank in `ranks`
  // Numbers in Peers (local ranks) of the members on this host, ascending.
  std::vector<uint32_t> local;
  uint32_t local_index = 0;              // of this rank in `local`
  std::vector<uint32_t> local_to_group;  // index in `ranks` of each member in `local`

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
  uint32_t local_size() const { return static_cast<uint32_t>(local.size()); }
  bool on_one_host() const { return local.size() == ranks.size(); }
};

// The result of a collective beside the bytes in the caller's memory.
struct CollectiveResult {
  // Memory that the backend took from the SharedHeap because the call came without an output. The
  // engine owns it once it is set here: it passes it to the caller or frees it, also when the
  // operation fails (unless peers may be using it).
  void* made_output = nullptr;
  int64_t rows = 0;  // extent of dimension 0 of the output: allgather, alltoall, reducescatter
  std::vector<int64_t> received_splits;  // alltoall: rows from each member
};

// One collective on one tensor as a backend sees it: checked, and known to be the same on every
// member. Owns nothing.
struct CollectiveCall {
  Collective collective = Collective::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kUint8;
  uint32_t root = 0;  // index in the group, for a broadcast
  size_t count = 0;   // elements of the input
  const void* input = nullptr;
  // May equal input. Null where the size follows from the peers' parts: see CollectiveResult.
  void* output = nullptr;
  double prescale = 1.0;
  double postscale = 1.0;
  // Of input and output; then the ordinal in this process, and the stream that produces the input
  // and consumes the output (null: the default stream).
  DeviceKind device = DeviceKind::kHost;
  int32_t device_index = 0;
  void* stream = nullptr;
  const Group* group = nullptr;        // never null once the engine has made the call
  CollectiveResult* result = nullptr;  // never null for allgather, alltoall, reducescatter
  int64_t rows = 0;                    // extent of dimension 0 of the input; 0 for a scalar
  size_t row_count = 0;                // elements of one row: the product of the other extents
  const int64_t* splits = nullptr;     // alltoall: rows for each member of the group
  // Not null, over several hosts only: the members only agree and no data move; this receives the
  // answer. Then `input` is heap memory that the other members of the host may read.
  Agreement* agreement = nullptr;
  ActivityNotes* activities = nullptr;  // for the timeline; null: not recorded
  // The submitting thread does nothing but advance the call until it is over, on a core of its own.
  bool caller_waits = false;

  size_t bytes() const { return count * SizeOf(dtype); }
  size_t row_bytes() const { return row_count * SizeOf(dtype); }
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_COLLECTIVE_H_
