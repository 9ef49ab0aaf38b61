// A collective as a sequence of NCCL calls, as plain values: moves of the batched kernel, calls in
// one group, moves again, steps of an Adasum; and so on. Pure functions; nccl_operation.h executes
// the plans.
//
// Every member must make the same calls, so the input (sizes, limits, abilities) is equal on all
// members except for addresses and the own index. Parts are in elements; empty parts are not sent.
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

// As NcclCall::op: the operation created for NcclPlan::pre_multiply.
inline constexpr NcclReduceOp kNcclPreMultiplied = -1;

struct NcclPreMultiply {
  NcclDataType type = kNcclFloat32;
  DType dtype = DType::kFloat32;
  double factor = 1.0;
};

// Executed in order. Empty steps are left out.
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

// Device memory for data that must be contiguous. Bytes between packed tensors are reduced too, so
// it was cleared once.
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
  // Tensors of at least this size go into the group unpacked. 0: all do.
  uint64_t pack_below_bytes = 64 * 1024;
};

// Tensors of one type. Small ones are packed if there are at least two and the buffer has space.
Result<NcclPlan> PlanAllreduce(const NcclReduction& reduction, const NcclAbilities& abilities,
                               std::span<const NcclTensor> tensors, const NcclPacking& packing);

// `root`: its index. On other members `from` is unused.
NcclPlan PlanBroadcast(DType dtype, const NcclTensor& tensor, uint32_t root);

// parts[i]: the part from member i; `to` has room for all of them in order.
NcclPlan PlanAllgather(DType dtype, DeviceAddress from, DeviceAddress to,
                       std::span<const uint64_t> parts, uint32_t index);

// parts[i]: the part for member i; `from` has all of them in order, and is not `to`. If the batched
// kernel scales inputs, the buffer needs room for all; kOutOfMemory with the size if it lacks it.
Result<NcclPlan> PlanReducescatter(const NcclReduction& reduction, const NcclAbilities& abilities,
                                   DeviceAddress from, DeviceAddress to,
                                   std::span<const uint64_t> parts, uint32_t index,
                                   const NcclBuffer& buffer);

// sent[i] goes to member i, received[i] comes from it, both in order; `from` is not `to`.
NcclPlan PlanAlltoall(DType dtype, DeviceAddress from, DeviceAddress to,
                      std::span<const uint64_t> sent, std::span<const uint64_t> received);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_PLAN_H_
