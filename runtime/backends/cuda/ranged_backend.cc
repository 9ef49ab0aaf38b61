#include "runtime/backends/cuda/ranged_backend.h"

#include <optional>
#include <utility>

#include "runtime/base/env.h"

namespace hvd {
namespace {

// The inner backend's state of an operation, and its range until that has ended.
struct RangedOp final : OpState {
  RangedOp(const NvtxRanges& of, const char* text, uint64_t bytes)
      : ranges(of), range(of.Start(text, bytes)) {}
  ~RangedOp() override { End(); }

  void End() {
    if (range) ranges.End(*std::exchange(range, std::nullopt));
  }

  const NvtxRanges& ranges;
  std::optional<nvtx::RangeId> range;
  std::unique_ptr<OpState> inner;
};

RangedOp& RangedOf(OpState* state) { return static_cast<RangedOp&>(*state); }
// Null if Prepare was skipped.
const OpState* InnerOf(const OpState* state) {
  return state == nullptr ? nullptr : static_cast<const RangedOp*>(state)->inner.get();
}

const char* TextOf(Collective collective) {
  switch (collective) {
    case Collective::kAllreduce: return "allreduce";
    case Collective::kAllgather: return "allgather";
    case Collective::kBroadcast: return "broadcast";
    case Collective::kAlltoall: return "alltoall";
    case Collective::kReducescatter: return "reducescatter";
    default: return "barrier";
  }
}

Result<bool> EndWith(RangedOp& op, Result<bool> done) {
  if (!done.ok() || *done) op.End();
  return done;
}

}  // namespace

Status RangedBackend::Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                              BufferDescriptor* descriptor) {
  auto op = std::make_unique<RangedOp>(ranges_, TextOf(call.collective), call.bytes());
  HVD_RETURN_IF_ERROR(inner_->Prepare(call, &op->inner, descriptor));
  *state = std::move(op);
  return Status::Ok();
}

Result<bool> RangedBackend::Start(const CollectiveCall& call, OpState* state,
                                  const MemberInputs& parts) {
  if (state == nullptr) return inner_->Start(call, nullptr, parts);
  RangedOp& op = RangedOf(state);
  return EndWith(op, inner_->Start(call, op.inner.get(), parts));
}

Result<bool> RangedBackend::Advance(const CollectiveCall& call, OpState* state) {
  RangedOp& op = RangedOf(state);
  return EndWith(op, inner_->Advance(call, op.inner.get()));
}

void RangedBackend::WorkAhead(const CollectiveCall& call, OpState* state) {
  inner_->WorkAhead(call, state == nullptr ? nullptr : RangedOf(state).inner.get());
}

bool RangedBackend::Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const {
  return inner_->Needs(call, InnerOf(state), peer);
}

std::string RangedBackend::Awaits(const CollectiveCall& call, const OpState* state) const {
  return inner_->Awaits(call, InnerOf(state));
}

AwaitedRanks RangedBackend::AwaitedBy(const CollectiveCall& call, const OpState* state) const {
  return inner_->AwaitedBy(call, InnerOf(state));
}

void RangedBackend::Withdraw(const CollectiveCall& call, const OpState* state, std::string why) {
  inner_->Withdraw(call, InnerOf(state), std::move(why));
}

void RangedBackend::Abandon(std::unique_ptr<OpState> state, bool peers_may_work) {
  if (state != nullptr) inner_->Abandon(std::move(RangedOf(state.get()).inner), peers_may_work);
}

std::unique_ptr<DeviceBackend> WithRanges(std::unique_ptr<DeviceBackend> backend,
                                          const CudaBackendOptions& options) {
  const Result<const NvtxRanges*> ranges =
      NvtxRanges::Meet(GetEnv(nvtx::kInjectionVariable).value_or(""));
  if (ranges.ok()) return std::make_unique<RangedBackend>(std::move(backend), **ranges);
  if (options.rank == 0 && options.warn) options.warn(ranges.status().message());
  return backend;
}

}  // namespace hvd
