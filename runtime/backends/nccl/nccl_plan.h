// A collective as a sequence of NCCL's calls, as plain values: moves of the batched kernel, calls
// in one group, moves again, steps of an Adasum; and more of these. Pure functions;
// nccl_operation.h does what they say.
//
// Every member must come to the same calls, so the input here (sizes, limits, abilities) is the
// same on all members but for addresses and the own index. Parts are in elements; an empty part is
// neither sent nor received.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_PLAN_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_PLAN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/backends/nccl/nccl_types.h"
#include "runtime/base/status.h"
#include "runtime/device/device.h"

namespace hvd {

enum class NcclCallKind : uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,      // count: of one part
  kReduceScatter,  // count: of one part
  kSend,
  kRecv,
};

struct NcclCall {
  NcclCallKind kind = NcclCallKind::kAllReduce;
  DeviceAddress from = 0;  // 0: there is none
  DeviceAddress to = 0;
  uint64_t count = 0;  // elements of `type`
  NcclDataType type = kNcclUint8;
  NcclReduceOp op = kNcclSum;
  int peer = 0;  // root, or the other member of a send or receive

  bool operator==(const NcclCall&) const = default;
};

// In place of NcclCall::op: the one that is made for NcclPlan::pre_multiply.
inline constexpr NcclReduceOp kNcclPreMultiplied = -1;

struct NcclPreMultiply {
  NcclDataType type = kNcclFloat32;
  DType dtype = DType::kFloat32;
  double factor = 1.0;
};

// Done from top to bottom. Empty steps are left out.
struct NcclPlan {
  BatchSpec before_spec;
  std::vector<BatchItem> before;
  std::optional<NcclPreMultiply> pre_multiply;
  std::vector<NcclCall> calls;  // in one group
  BatchSpec after_spec;
  std::vector<BatchItem> after;
  std::vector<AdasumStep> adasum;
  std::vector<NcclPlan> then;  // each without a `then` of its own
};

// Memory of the device for what has to lie together. Bytes between packed tensors are reduced too,
// so it was cleared once.
struct NcclBuffer {
  DeviceAddress address = 0;
  uint64_t bytes = 0;
};

struct NcclTensor {
  DeviceAddress from = 0;
  DeviceAddress to = 0;  // may equal `from`
  uint64_t elements = 0;
};

struct NcclPacking {
  NcclBuffer buffer;
  // Tensors of this size and above go into the group as they are. 0: all do.
  uint64_t pack_below_bytes = 64 * 1024;
};

// Tensors of one type. Small ones are packed, as long as there are two and the buffer has space.
Result<NcclPlan> PlanAllreduce(const NcclReduction& reduction, const NcclAbilities& abilities,
                               std::span<const NcclTensor> tensors, const NcclPacking& packing);

// `root`: its index. On other members `from` has no meaning.
NcclPlan PlanBroadcast(DType dtype, const NcclTensor& tensor, uint32_t root);

// parts[i]: the part that member i gives; `to` has room for all of them in order.
NcclPlan PlanAllgather(DType dtype, DeviceAddress from, DeviceAddress to,
                       std::span<const uint64_t> parts, uint32_t index);

// parts[i]: the part that member i gets; `from` has all of them in order, and is not `to`. The
// buffer has room for all where inputs are scaled by the batched kernel; kOutOfMemory with the size
// if not.
Result<NcclPlan> PlanReducescatter(const NcclReduction& reduction, const NcclAbilities& abilities,
                                   DeviceAddress from, DeviceAddress to,
                                   std::span<const uint64_t> parts, uint32_t index,
                                   const NcclBuffer& buffer);

// sent[i] goes to member i, received[i] comes from it, both in order; `from` is not `to`.
NcclPlan PlanAlltoall(DType dtype, DeviceAddress from, DeviceAddress to,
                      std::span<const uint64_t> sent, std::span<const uint64_t> received);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_PLAN_H_
