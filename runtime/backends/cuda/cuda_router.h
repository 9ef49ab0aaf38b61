// CudaRouter: the engine's backend for CUDA tensors. Loads libhvd_cuda.so with the first of them
// and costs nothing before. If the library cannot be loaded, the members are told by a refusal, and
// all fail with its message.
//
// Abort, Watch and loaded from any thread; all else as in Backend.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_CUDA_ROUTER_H_
#define HVD_RUNTIME_BACKENDS_CUDA_CUDA_ROUTER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "runtime/backends/cuda/cuda_backend_options.h"
#include "runtime/backends/cuda/hosts_agreement.h"

namespace hvd {

class CudaRouter final : public DeviceBackend {
 public:
  // Null: the status says why.
  using Open = std::function<std::unique_ptr<DeviceBackend>(const CudaBackendOptions&, Status*)>;

  // `folder`: where to look for the library; "": where libhvd.so is.
  explicit CudaRouter(CudaBackendOptions options, std::string folder = "");
  // Calls `open`, with the first tensor, instead of loading the library.
  CudaRouter(CudaBackendOptions options, Open open)
      : options_(std::move(options)), open_(std::move(open)) {}

  std::string_view name() const override { return "cuda"; }
  // All members must answer alike, and some may not have loaded the library yet.
  bool IsExchange(const CollectiveCall&) const override { return false; }
  void WorkAhead(const CollectiveCall& call, OpState* state) override;
  Attendance* attendance() override { return loaded() ? backend()->attendance() : nullptr; }

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
  bool UsesNccl() const override { return loaded() && backend()->UsesNccl(); }
  bool loaded() const { return backend() != nullptr; }

 private:
  DeviceBackend* backend() const { return published_.load(std::memory_order_acquire); }
  void Load();
  Status PrepareAcrossHosts(const CollectiveCall& call, const std::string& refusal,
                            std::unique_ptr<HostsAgreement>* agreement,
                            BufferDescriptor* descriptor);

  const CudaBackendOptions options_;
  const Open open_;
  std::unique_ptr<DeviceBackend> owned_;
  std::atomic<DeviceBackend*> published_{nullptr};  // owned_, for other threads
  Status failure_;                                  // why it could not be loaded
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CUDA_ROUTER_H_
