#include "runtime/backends/nccl/nccl_operation.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace hvd {
namespace {

void* Pointer(DeviceAddress address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

NcclAnswer MakeCall(const NcclApi& api, const NcclCall& call, NcclReduceOp op, NcclCommHandle comm,
                    CuStream stream) {
  void* from = Pointer(call.from);
  void* to = Pointer(call.to);
  const size_t count = call.count;
  switch (call.kind) {
    case NcclCallKind::kAllReduce:
      return {api.all_reduce.symbol, api.all_reduce(from, to, count, call.type, op, comm, stream)};
    case NcclCallKind::kReduce:
      return {api.reduce.symbol,
              api.reduce(from, to, count, call.type, op, call.peer, comm, stream)};
    case NcclCallKind::kBroadcast:
      return {api.broadcast.symbol,
              api.broadcast(from, to, count, call.type, call.peer, comm, stream)};
    case NcclCallKind::kAllGather:
      return {api.all_gather.symbol, api.all_gather(from, to, count, call.type, comm, stream)};
    case NcclCallKind::kReduceScatter:
      return {api.reduce_scatter.symbol,
              api.reduce_scatter(from, to, count, call.type, op, comm, stream)};
    case NcclCallKind::kSend:
      return {api.send.symbol, api.send(from, count, call.type, call.peer, comm, stream)};
    case NcclCallKind::kRecv:
      return {api.recv.symbol, api.recv(to, count, call.type, call.peer, comm, stream)};
  }
  return {"a call that is not known", kNcclInternalError};
}

// A member that only sends or only receives makes a group of one, as its partners make theirs.
bool NeedsGroup(const NcclPlan& plan) {
  const NcclCallKind kind = plan.calls.front().kind;
  return plan.calls.size() > 1 || kind == NcclCallKind::kSend || kind == NcclCallKind::kRecv;
}

// A group that was begun is ended, whatever happens in it: otherwise each later call of the thread
// would become part of it.
NcclAnswer MakeGroup(const NcclApi& api, const NcclPlan& plan, NcclReduceOp pre_multiplied,
                     NcclCommHandle comm, CuStream stream) {
  NcclAnswer first{api.group_start.symbol, api.group_start()};
  if (first.failed()) return first;
  for (const NcclCall& call : plan.calls) {
    const NcclReduceOp op = call.op == kNcclPreMultiplied ? pre_multiplied : call.op;
    first = MakeCall(api, call, op, comm, stream);
    if (first.failed()) break;
  }
  const NcclAnswer end{api.group_end.symbol, api.group_end()};
  return first.failed() ? first : end;
}

NcclAnswer MakePreMultiply(const NcclApi& api, const NcclPreMultiply& wanted, NcclCommHandle comm,
                           NcclReduceOp* made) {
  std::array<std::byte, 8> scalar = ScalarBytes(wanted.dtype, wanted.factor);
  const auto& create = api.red_op_create_pre_mul_sum;
  return {create.symbol, create(made, scalar.data(), wanted.type, kNcclScalarOfHost, comm)};
}

}  // namespace

Result<bool> NcclOperation::Advance() {
  for (;;) {
    const Result<bool> given = AdvanceOne();
    if (!given.ok() || !*given || next_ == plan_.then.size()) return given;
    ++next_;
    stage_ = Stage::kBefore;
  }
}

Result<bool> NcclOperation::AdvanceOne() {
  if (stage_ == Stage::kBefore) {
    if (!plan().before.empty())
      HVD_RETURN_IF_ERROR(device_.Move(plan().before_spec, plan().before));
    stage_ = plan().calls.empty() ? Stage::kAfter : Stage::kCalls;
    if (!plan().calls.empty()) HVD_RETURN_IF_ERROR(GiveCalls());
  }
  if (stage_ == Stage::kCalls) {
    // Until then NCCL's kernels may not be in the stream yet, and the work after them would run
    // first.
    const Result<bool> settled = comm_.Settled();
    if (!settled.ok() || !*settled) return settled;
    HVD_RETURN_IF_ERROR(DropPreMultiply());
    stage_ = Stage::kAfter;
  }
  if (stage_ == Stage::kAfter) {
    HVD_RETURN_IF_ERROR(GiveRest());
    stage_ = Stage::kGiven;
  }
  return true;
}

Status NcclOperation::GiveRest() {
  if (!plan().after.empty()) HVD_RETURN_IF_ERROR(device_.Move(plan().after_spec, plan().after));
  for (const AdasumStep& step : plan().adasum) HVD_RETURN_IF_ERROR(device_.Adasum(step));
  return Status::Ok();
}

Status NcclOperation::GiveCalls() {
  return device_.With([&](CuStream stream) {
    return comm_.Use([&](const NcclApi& api, NcclCommHandle comm) {
      if (plan().pre_multiply.has_value()) {
        const NcclAnswer made = MakePreMultiply(api, *plan().pre_multiply, comm, &pre_multiplied_);
        if (made.failed()) return made;
      }
      if (NeedsGroup(plan())) return MakeGroup(api, plan(), pre_multiplied_, comm, stream);
      const NcclCall& call = plan().calls.front();
      const NcclReduceOp op = call.op == kNcclPreMultiplied ? pre_multiplied_ : call.op;
      return MakeCall(api, call, op, comm, stream);
    });
  });
}

Status NcclOperation::DropPreMultiply() {
  if (!plan().pre_multiply.has_value()) return Status::Ok();
  return comm_.Use([&](const NcclApi& api, NcclCommHandle comm) {
    return NcclAnswer{api.red_op_destroy.symbol, api.red_op_destroy(pre_multiplied_, comm)};
  });
}

}  // namespace hvd
