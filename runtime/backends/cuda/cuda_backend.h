// CudaBackend: collectives of tensors in GPU memory: by NCCL if the members can, otherwise staged
// through host memory by the backend below. README.md has the picture.
//
// One thread at a time (the engine's lock), but Abort and Watch, which any thread may call.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_CUDA_BACKEND_H_
#define HVD_RUNTIME_BACKENDS_CUDA_CUDA_BACKEND_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/cuda/across_hosts.h"
#include "runtime/backends/cuda/captured_batches.h"
#include "runtime/backends/cuda/cuda_backend_options.h"
#include "runtime/backends/cuda/cuda_op.h"
#include "runtime/backends/cuda/nccl_lane.h"
#include "runtime/backends/cuda/order/turn_cells.h"
#include "runtime/backends/nccl/nccl_loader.h"
#include "runtime/backends/shm/buffer_leases.h"
#include "runtime/base/mutex.h"
#include "runtime/device/cuda/cuda_device.h"

namespace hvd {

// The parts of CUDA in this process.
struct CudaParts {
  CudaDriver driver;  // started
  Result<NcclLibrary> nccl;
  CudaKernels kernels;
};

class CudaBackend final : public DeviceBackend {
 public:
  CudaBackend(CudaParts parts, CudaBackendOptions options);
  ~CudaBackend() override;

  std::string_view name() const override { return "cuda"; }

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
  void Abort(const Status& why) override;

  void Watch() override;
  void Leave() override;
  bool UsesNccl() const override;

 private:
  using Lanes = std::map<std::vector<uint64_t>, std::unique_ptr<NcclLane>>;

  Result<CudaDevice*> DeviceOf(const CollectiveCall& call);
  Status Describe(const CollectiveCall& call, CudaOp& op, BufferDescriptor* descriptor);
  Result<MemberFacts> MarkAndFacts(const CollectiveCall& call, CudaOp& op);
  Status PrepareAcrossHosts(const CollectiveCall& call, CudaOp& op, BufferDescriptor* descriptor);
  Status Attach(CudaOp& op, const MemberInputs& parts, std::span<const MemberFacts> facts);
  Status BeginStaged(CudaOp& op);
  Status StartRoute(const CollectiveCall& call, CudaOp& op, const MemberInputs& parts,
                    std::span<const MemberFacts> facts);
  Status DoAlone(const CollectiveCall& call, CudaOp& op, const MemberInputs& parts);
  // `turn_cells`: of the members; called when the lane is created.
  Result<NcclLane*> LaneOf(CudaOp& op, const std::vector<uint64_t>& places,
                           const std::function<Result<std::vector<TurnCell*>>()>& turn_cells);
  Result<bool> AdvanceStaged(CudaOp& op);
  Status PostDescriptor(CudaOp& op, const BufferDescriptor& own);
  Result<bool> StartPosted(CudaOp& op);
  void WarnOfStaging(const CudaOp& op);

  const CudaParts parts_;
  const CudaBackendOptions options_;
  CudaRoom room_;
  BufferLeases leases_;
  AcrossHosts across_hosts_;
  const bool keeps_graphs_;
  CallNumbers call_numbers_;
  uint64_t marks_ = 0;
  HostTurns host_turns_;
  RankTurns turns_;
  std::map<int, std::unique_ptr<CudaDevice>> devices_;  // by ordinal: staging, marks, results
  std::map<int, Status>
      unusable_;  // by ordinal: the error that made a GPU unusable when it was opened
  std::set<std::string> warnings_;
  mutable Mutex mutex_;
  std::vector<void*> left_behind_;  // results of abandoned operations
  // Changed by the engine's thread with the mutex held; read by it without.
  Lanes lanes_;
  Status aborted_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CUDA_BACKEND_H_
