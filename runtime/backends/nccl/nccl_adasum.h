// Adasum over NCCL. Each member combines one segment of each tensor: it receives that segment from
// all, computes its dot products, receives those of the other segments, and sends its part of the
// result to all. A byte of a tensor crosses a connection about as often as in an allreduce, and the
// processor never waits. Pure functions.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_ADASUM_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_ADASUM_H_

#include <cstdint>
#include <span>

#include "runtime/backends/nccl/nccl_plan.h"
#include "runtime/base/status.h"

namespace hvd {

// Describes one kind of operation; equal on all members except for the index.
struct NcclAdasum {
  DType dtype = DType::kFloat32;
  double scale = 1.0;  // prescale times postscale
  uint32_t size = 1;   // members
  uint32_t index = 0;
};

// kUnsupported with the reason: the type, or too many members.
Status CheckAdasum(DType dtype, uint32_t members);

// Bytes of memory for PlanAdasum.
uint64_t AdasumBytes(const NcclAdasum& adasum, std::span<const NcclTensor> tensors);

// Tensors that are combined separately and sent together, about 64 MiB at a time. The buffer has
// AdasumBytes.
NcclPlan PlanAdasum(const NcclAdasum& adasum, std::span<const NcclTensor> tensors,
                    const NcclBuffer& buffer);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_ADASUM_H_
