#include "runtime/backends/cuda/cuda_router.h"

#include <utility>

#include "runtime/backends/cuda/cuda_plugin.h"
#include "runtime/backends/cuda/refusal.h"

namespace hvd {
namespace {

struct RefusedOp final : OpState {
  std::string refusal;
  std::unique_ptr<HostsAgreement> agreement;  // over several hosts
};

HostsAgreement* AgreementOf(const OpState* state) {
  return state == nullptr ? nullptr : static_cast<const RefusedOp*>(state)->agreement.get();
}

}  // namespace

CudaRouter::CudaRouter(CudaBackendOptions options, std::string folder)
    : CudaRouter(std::move(options),
                 [folder = std::move(folder)](const CudaBackendOptions& given, Status* why) {
                   const Result<CudaPlugin> plugin = LoadCudaPlugin(folder);
                   if (!plugin.ok()) *why = plugin.status();
                   return std::unique_ptr<DeviceBackend>(
                       plugin.ok() ? plugin->open_backend(&given, why) : nullptr);
                 }) {}

void CudaRouter::Load() {
  if (owned_ != nullptr || !failure_.ok()) return;
  owned_ = open_(options_, &failure_);
  published_.store(owned_.get(), std::memory_order_release);
}

Status CudaRouter::Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                           BufferDescriptor* descriptor) {
  Load();
  if (loaded()) return backend()->Prepare(call, state, descriptor);
  auto op = std::make_unique<RefusedOp>();
  op->refusal = Refusal(options_.rank, failure_);
  if (options_.NeedsAgreement(*call.group)) {
    HVD_RETURN_IF_ERROR(PrepareAcrossHosts(call, op->refusal, &op->agreement, descriptor));
    *state = std::move(op);
    return Status::Ok();
  }
  *descriptor = DescriptorOfRefusal(op->refusal);
  *state = std::move(op);
  return Status::Ok();
}

// The other members may read the facts as long as the world lasts.
Status CudaRouter::PrepareAcrossHosts(const CollectiveCall& call, const std::string& refusal,
                                      std::unique_ptr<HostsAgreement>* agreement,
                                      BufferDescriptor* descriptor) {
  Status why;
  void* memory =
      options_.heap->Allocate(sizeof(HostsFacts), /*zeroed=*/true, &why, Until::kWorldEnds);
  if (memory == nullptr) return why;
  auto* facts = static_cast<HostsFacts*>(memory);
  facts->Refuse(refusal);
  *agreement = std::make_unique<HostsAgreement>(*options_.host, call, facts);
  return (*agreement)->Prepare(descriptor);
}

Result<bool> CudaRouter::Start(const CollectiveCall& call, OpState* state,
                               const MemberInputs& parts) {
  if (loaded()) return backend()->Start(call, state, parts);
  HostsAgreement* agreement = AgreementOf(state);
  if (agreement == nullptr)
    return FirstRefusal(parts.descriptors);  // this rank's own if there is no other
  const HostNote note{.refuses = true, .why = static_cast<const RefusedOp*>(state)->refusal};
  HVD_RETURN_IF_ERROR(agreement->Start(parts, EncodeHostNote(note)));
  return false;
}

Result<bool> CudaRouter::Advance(const CollectiveCall& call, OpState* state) {
  if (loaded()) return backend()->Advance(call, state);
  const Result<bool> agreed = AgreementOf(state)->Advance();
  if (!agreed.ok() || !*agreed) return agreed;
  return Unsupported(static_cast<const RefusedOp*>(state)->refusal);
}

void CudaRouter::WorkAhead(const CollectiveCall& call, OpState* state) {
  if (loaded()) backend()->WorkAhead(call, state);
}

bool CudaRouter::Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const {
  if (loaded()) return backend()->Needs(call, state, peer);
  const HostsAgreement* agreement = AgreementOf(state);
  return agreement != nullptr && agreement->Needs(peer);
}

std::string CudaRouter::Awaits(const CollectiveCall& call, const OpState* state) const {
  if (loaded()) return backend()->Awaits(call, state);
  const HostsAgreement* agreement = AgreementOf(state);
  return agreement == nullptr ? "" : agreement->Awaits();
}

AwaitedRanks CudaRouter::AwaitedBy(const CollectiveCall& call, const OpState* state) const {
  if (loaded()) return backend()->AwaitedBy(call, state);
  const HostsAgreement* agreement = AgreementOf(state);
  return agreement == nullptr ? AwaitedRanks{} : agreement->AwaitedBy();
}

void CudaRouter::Withdraw(const CollectiveCall& call, const OpState* state, std::string why) {
  if (loaded()) return backend()->Withdraw(call, state, std::move(why));
  if (HostsAgreement* agreement = AgreementOf(state)) agreement->Withdraw(std::move(why));
}

void CudaRouter::Abandon(std::unique_ptr<OpState> state, bool peers_may_work) {
  if (loaded()) return backend()->Abandon(std::move(state), peers_may_work);
  if (HostsAgreement* agreement = AgreementOf(state.get())) agreement->Abandon(peers_may_work);
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
