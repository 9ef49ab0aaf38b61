#include "runtime/backends/cuda/cuda_router.h"

#include <utility>

#include "runtime/backends/cuda/cuda_plugin.h"
#include "runtime/backends/cuda/refusal.h"

namespace hvd {
namespace {

struct RefusedOp final : OpState {
  std::string refusal;
};

}  // namespace

void CudaRouter::Load() {
  if (owned_ != nullptr || !failure_.ok()) return;
  const Result<CudaPlugin> plugin = LoadCudaPlugin(folder_);
  if (!plugin.ok()) {
    failure_ = plugin.status();
    return;
  }
  owned_.reset(plugin->open_backend(&options_, &failure_));
  published_.store(owned_.get(), std::memory_order_release);
}

Status CudaRouter::Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                           BufferDescriptor* descriptor) {
  Load();
  if (loaded()) return backend()->Prepare(call, state, descriptor);
  if (!call.group->on_one_host()) return failure_;
  auto op = std::make_unique<RefusedOp>();
  op->refusal = Refusal(options_.rank, failure_);
  *descriptor = DescriptorOfRefusal(op->refusal);
  *state = std::move(op);
  return Status::Ok();
}

Result<bool> CudaRouter::Start(const CollectiveCall& call, OpState* state,
                               const MemberInputs& parts) {
  if (loaded()) return backend()->Start(call, state, parts);
  return FirstRefusal(parts.descriptors);  // this rank's own, if no other
}

Result<bool> CudaRouter::Advance(const CollectiveCall& call, OpState* state) {
  return backend()->Advance(call, state);
}

bool CudaRouter::Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const {
  return loaded() && backend()->Needs(call, state, peer);
}

std::string CudaRouter::Awaits(const CollectiveCall& call, const OpState* state) const {
  return loaded() ? backend()->Awaits(call, state) : "";
}

AwaitedRanks CudaRouter::AwaitedBy(const CollectiveCall& call, const OpState* state) const {
  return loaded() ? backend()->AwaitedBy(call, state) : AwaitedRanks{};
}

void CudaRouter::Withdraw(const CollectiveCall& call, const OpState* state, std::string why) {
  if (loaded()) backend()->Withdraw(call, state, std::move(why));
}

void CudaRouter::Abandon(std::unique_ptr<OpState> state, bool peers_may_work) {
  if (loaded()) backend()->Abandon(std::move(state), peers_may_work);
}

void CudaRouter::Abort(const Status& why) {
  if (loaded()) backend()->Abort(why);
}

void CudaRouter::Watch() {
  if (loaded()) backend()->Watch();
}

void CudaRouter::Leave() {
  if (loaded()) backend()->Leave();
}

}  // namespace hvd
