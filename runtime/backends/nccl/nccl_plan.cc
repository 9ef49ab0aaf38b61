#include "runtime/backends/nccl/nccl_plan.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "runtime/base/text/format.h"
#include "runtime/device/cuda/batch_plan.h"

namespace hvd {
namespace {

uint64_t Sum(std::span<const uint64_t> parts) {
  return std::accumulate(parts.begin(), parts.end(), uint64_t{0});
}

bool AllAlike(std::span<const uint64_t> parts) {
  return std::adjacent_find(parts.begin(), parts.end(), std::not_equal_to<>()) == parts.end();
}

// The plan without calls, and each call's part of the reduction.
struct ReductionPlan {
  NcclPlan plan;
  NcclCall call;
  NcclReductionSteps steps;
};

Result<ReductionPlan> BeginReduction(const NcclReduction& reduction,
                                     const NcclAbilities& abilities) {
  const Result<NcclReductionSteps> steps = StepsOfReduction(reduction, abilities);
  if (!steps.ok()) return steps.status();
  ReductionPlan begun;
  begun.steps = *steps;
  begun.call.type = steps->type;
  begun.call.op = steps->op;
  if (steps->pre_multiply.has_value()) {
    begun.call.op = kNcclPreMultiplied;
    begun.plan.pre_multiply = {steps->type, reduction.dtype, *steps->pre_multiply};
  }
  begun.plan.before_spec = {reduction.dtype, reduction.dtype, steps->before};
  begun.plan.after_spec = {reduction.dtype, reduction.dtype, steps->after};
  return begun;
}

// The tensors that are packed, in order; none if there would be only one.
std::vector<bool> ChoosePacked(DType dtype, std::span<const NcclTensor> tensors,
                               const NcclPacking& packing) {
  std::vector<bool> packed(tensors.size());
  uint64_t used = 0, count = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t bytes = tensors[i].elements * SizeOf(dtype);
    if (bytes == 0 || bytes >= packing.pack_below_bytes) continue;
    const DeviceTensor alone{.elements = tensors[i].elements};
    const uint64_t place = BufferOffsets(dtype, {&alone, 1}).back();
    if (used + place > packing.buffer.bytes) continue;
    used += place;
    count += 1;
    packed[i] = true;
  }
  if (count < 2) packed.assign(tensors.size(), false);
  return packed;
}

void AddPacked(ReductionPlan& begun, DType dtype, DeviceAddress buffer,
               const std::vector<DeviceTensor>& from, const std::vector<DeviceTensor>& to) {
  if (from.empty()) return;
  const std::vector<uint64_t> offsets = BufferOffsets(dtype, from);
  const std::vector<BatchItem> in = PackItems(from, buffer, offsets);
  const std::vector<BatchItem> out = UnpackItems(to, buffer, offsets);
  begun.plan.before.insert(begun.plan.before.end(), in.begin(), in.end());
  begun.plan.after.insert(begun.plan.after.end(), out.begin(), out.end());
  NcclCall call = begun.call;
  call.from = call.to = buffer;
  call.count = offsets.back() / SizeOf(dtype);
  begun.plan.calls.push_back(call);
}

void AddUnpacked(ReductionPlan& begun, const NcclTensor& tensor) {
  NcclCall call = begun.call;
  call.from = tensor.from;
  call.to = tensor.to;
  call.count = tensor.elements;
  // The input is not changed: the scaled copy is where the result will be.
  if (begun.steps.before != 1.0) {
    begun.plan.before.push_back({tensor.from, tensor.to, tensor.elements});
    call.from = tensor.to;
  }
  if (begun.steps.after != 1.0) {
    begun.plan.after.push_back({tensor.to, tensor.to, tensor.elements});
  }
  begun.plan.calls.push_back(call);
}

}  // namespace

Result<NcclPlan> PlanAllreduce(const NcclReduction& reduction, const NcclAbilities& abilities,
                               std::span<const NcclTensor> tensors, const NcclPacking& packing) {
  Result<ReductionPlan> begun = BeginReduction(reduction, abilities);
  if (!begun.ok()) return begun.status();
  const std::vector<bool> packed = ChoosePacked(reduction.dtype, tensors, packing);
  std::vector<DeviceTensor> from, to;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (packed[i]) {
      from.push_back({tensors[i].from, tensors[i].elements});
      to.push_back({tensors[i].to, tensors[i].elements});
    } else if (tensors[i].elements > 0) {
      AddUnpacked(*begun, tensors[i]);
    }
  }
  AddPacked(*begun, reduction.dtype, packing.buffer.address, from, to);
  return std::move(begun->plan);
}

NcclPlan PlanBroadcast(DType dtype, const NcclTensor& tensor, uint32_t root) {
  NcclPlan plan;
  if (tensor.elements == 0) return plan;
  plan.calls.push_back({.kind = NcclCallKind::kBroadcast,
                        .from = tensor.from,
                        .to = tensor.to,
                        .count = tensor.elements * SizeOf(dtype),
                        .peer = static_cast<int>(root)});
  return plan;
}

NcclPlan PlanAllgather(DType dtype, DeviceAddress from, DeviceAddress to,
                       std::span<const uint64_t> parts, uint32_t index) {
  NcclPlan plan;
  if (Sum(parts) == 0) return plan;
  const uint64_t size = SizeOf(dtype);
  if (AllAlike(parts)) {
    plan.calls.push_back(
        {.kind = NcclCallKind::kAllGather, .from = from, .to = to, .count = parts[0] * size});
    return plan;
  }
  // With broadcasts, each byte crosses each connection of a ring once.
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] > 0) {
      plan.calls.push_back({.kind = NcclCallKind::kBroadcast,
                            .from = i == index ? from : 0,
                            .to = to,
                            .count = parts[i] * size,
                            .peer = static_cast<int>(i)});
    }
    to += parts[i] * size;
  }
  return plan;
}

Result<NcclPlan> PlanReducescatter(const NcclReduction& reduction, const NcclAbilities& abilities,
                                   DeviceAddress from, DeviceAddress to,
                                   std::span<const uint64_t> parts, uint32_t index,
                                   const NcclBuffer& buffer) {
  Result<ReductionPlan> begun = BeginReduction(reduction, abilities);
  if (!begun.ok()) return begun.status();
  NcclPlan plan = std::move(begun->plan);
  const uint64_t size = SizeOf(reduction.dtype), elements = Sum(parts);
  if (elements == 0) return plan;
  if (begun->steps.before != 1.0) {
    if (buffer.bytes < elements * size) {
      return OutOfMemory(
          Format("a reducescatter of scaled {} needs {} bytes of the fusion buffer, which has {}",
                 NameOf(reduction.dtype), elements * size, buffer.bytes));
    }
    plan.before.push_back({from, buffer.address, elements});
    from = buffer.address;
  }
  if (begun->steps.after != 1.0 && parts[index] > 0) plan.after.push_back({to, to, parts[index]});
  NcclCall call = begun->call;
  call.from = from;
  call.count = parts[0];
  call.to = to;
  if (AllAlike(parts)) {
    call.kind = NcclCallKind::kReduceScatter;
    plan.calls.push_back(call);
    return plan;
  }
  call.kind = NcclCallKind::kReduce;
  for (size_t i = 0; i < parts.size(); ++i) {
    call.to = i == index ? to : 0;
    call.count = parts[i];
    call.peer = static_cast<int>(i);
    if (parts[i] > 0) plan.calls.push_back(call);
    call.from += parts[i] * size;
  }
  return plan;
}

NcclPlan PlanAlltoall(DType dtype, DeviceAddress from, DeviceAddress to,
                      std::span<const uint64_t> sent, std::span<const uint64_t> received) {
  NcclPlan plan;
  const uint64_t size = SizeOf(dtype);
  for (size_t i = 0; i < sent.size(); ++i) {
    const int peer = static_cast<int>(i);
    const uint64_t out = sent[i] * size, in = received[i] * size;
    if (out > 0) {
      plan.calls.push_back({.kind = NcclCallKind::kSend, .from = from, .count = out, .peer = peer});
    }
    if (in > 0) {
      plan.calls.push_back({.kind = NcclCallKind::kRecv, .to = to, .count = in, .peer = peer});
    }
    from += out;
    to += in;
  }
  return plan;
}

}  // namespace hvd
