// StagedOp: an operation on GPU memory through the host: the input is copied to pinned memory, the
// backend below works there, and the result is copied back. The slow route.
//
// The caller drives the steps: CopyOut, CopiedOut until true; then those of a Backend; then CopyIn.
// Nothing blocks. One thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_STAGED_OP_H_
#define HVD_RUNTIME_BACKENDS_CUDA_STAGED_OP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/backends/backend.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

// The parts that the operations of one backend share.
struct CudaRoom {
  Backend& host;
  SharedHeap& heap;
  CudaDriver driver;
};

// Device memory as passed by the caller.
inline DeviceAddress AddressOf(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

// Where the result of a call goes: the caller's memory, or, if it is not empty, new device memory
// that the caller will own.
Result<DeviceAddress> OutputOf(CudaRoom& room, CudaDevice& device, int ordinal,
                               const CollectiveCall& call, size_t bytes);

class StagedOp {
 public:
  // All arguments outlive the operation.
  StagedOp(CudaRoom& room, CudaDevice& device, const CollectiveCall& call);
  ~StagedOp();
  StagedOp(const StagedOp&) = delete;
  StagedOp& operator=(const StagedOp&) = delete;

  // Begins after the mark.
  Status CopyOut(DeviceMark mark);
  Result<bool> CopiedOut();

  Status Prepare(BufferDescriptor* descriptor) {
    return room_.host.Prepare(host_call_, &state_, descriptor);
  }
  Result<bool> Start(const MemberInputs& parts) {
    return room_.host.Start(host_call_, state_.get(), parts);
  }
  Result<bool> Advance() { return room_.host.Advance(host_call_, state_.get()); }
  bool Needs(uint32_t peer) const { return room_.host.Needs(host_call_, state_.get(), peer); }
  std::string Awaits() const { return room_.host.Awaits(host_call_, state_.get()); }
  AwaitedRanks AwaitedBy() const { return room_.host.AwaitedBy(host_call_, state_.get()); }
  void Withdraw(std::string why) { room_.host.Withdraw(host_call_, state_.get(), std::move(why)); }

  // The host is done: gives the result to the device and makes the caller's stream wait for it.
  Status CopyIn();
  void Abandon(bool peers_may_work);

 private:
  Status CopyMadeIn();

  CudaRoom& room_;
  CudaDevice& device_;
  const CollectiveCall& call_;  // on the device
  CollectiveCall host_call_;
  CollectiveResult result_;  // of the host
  std::unique_ptr<OpState> state_;
  std::byte* staging_ = nullptr;
  DeviceTicket copied_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_STAGED_OP_H_
