// Gather: which bytes one member reads from the others' inputs in an allgather, alltoall, broadcast
// or reducescatter, and where it writes them. The inputs may be payloads, memory of peers or its
// own.
#ifndef HVD_RUNTIME_BACKENDS_SHM_GATHER_PLAN_H_
#define HVD_RUNTIME_BACKENDS_SHM_GATHER_PLAN_H_

#include <span>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/shm/chunking.h"
#include "runtime/device/host_reduce.h"

namespace hvd {

// Bytes [source, source + bytes) of member `from`'s input go to `target` of the output.
struct Piece {
  uint32_t from = 0;
  size_t source = 0, target = 0, bytes = 0;
};

struct GatherPlan {
  std::vector<Piece> pieces;  // of a copy; empty for a reducescatter
  ElementRange reduced;       // of every input; count 0 unless it is a reducescatter
  int64_t rows = 0;           // of the output
  size_t bytes = 0;           // of the output
  std::vector<int64_t> received_splits;
};

// Extents as in MemberInputs, by member.
GatherPlan PlanGather(const CollectiveCall& call, std::span<const Extent> extents);

// An average is a sum, divided later.
Arithmetic ArithmeticOf(ReduceOp op);
// `divisor`: as DivisorOf gives it.
ReduceSpec SpecOf(const CollectiveCall& call, uint32_t divisor);

// One member's allreduce of all inputs.
void CombineAll(const CollectiveCall& call, std::span<const void* const> inputs, void* output);

// The weights of an Adasum, with both scales. `dot_products` as from AddDotProducts.
std::vector<double> ScaledAdasumWeights(const CollectiveCall& call,
                                        std::span<const double> dot_products,
                                        uint32_t participants);

// True if the output is where the input is.
bool OutputOverlapsInput(const CollectiveCall& call, size_t output_bytes);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_GATHER_PLAN_H_
