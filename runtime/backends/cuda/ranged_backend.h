// RangedBackend: a device backend that emits a profiler range per operation, from its announcement
// to its end on this rank. Without it, ranges cost an operation nothing.
//
// Threads as in Backend.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_RANGED_BACKEND_H_
#define HVD_RUNTIME_BACKENDS_CUDA_RANGED_BACKEND_H_

#include <memory>
#include <string>

#include "runtime/backends/cuda/cuda_backend_options.h"
#include "runtime/backends/cuda/nvtx/nvtx_ranges.h"

namespace hvd {

class RangedBackend final : public DeviceBackend {
 public:
  RangedBackend(std::unique_ptr<DeviceBackend> inner, const NvtxRanges& ranges)
      : inner_(std::move(inner)), ranges_(ranges) {}

  std::string_view name() const override { return inner_->name(); }
  // Such a call has no range if the engine skips Prepare.
  bool IsExchange(const CollectiveCall& call) const override { return inner_->IsExchange(call); }
  void WorkAhead(const CollectiveCall& call, OpState* state) override;
  Attendance* attendance() override { return inner_->attendance(); }

  Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                 BufferDescriptor* descriptor) override;
  Result<bool> Start(const CollectiveCall& call, OpState* state,
                     const MemberInputs& parts) override;
  Result<bool> Advance(const CollectiveCall& call, OpState* state) override;
  bool Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const override;
  std::string Awaits(const CollectiveCall& call, const OpState* state) const override;
  AwaitedRanks AwaitedBy(const CollectiveCall& call, const OpState* state) const override;
  void Withdraw(const CollectiveCall& call, const OpState* state, std::string why) override;
  void Abandon(std::unique_ptr<OpState> state, bool peers_may_work) override;
  void Abort(const Status& why) override { inner_->Abort(why); }

  void Watch() override { inner_->Watch(); }
  void Leave() override { inner_->Leave(); }
  bool UsesNccl() const override { return inner_->UsesNccl(); }

 private:
  const std::unique_ptr<DeviceBackend> inner_;
  const NvtxRanges& ranges_;
};

// The backend with ranges for the profiler named in the environment; without one the backend
// unchanged, and rank 0 logs why.
std::unique_ptr<DeviceBackend> WithRanges(std::unique_ptr<DeviceBackend> backend,
                                          const CudaBackendOptions& options);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_RANGED_BACKEND_H_
