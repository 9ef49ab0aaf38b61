// CudaDevice: a Device on the CUDA driver, in the primary context. Its queue is a stream of its own
// with the highest priority that does not synchronise with the default stream.
#ifndef HVD_RUNTIME_DEVICE_CUDA_CUDA_DEVICE_H_
#define HVD_RUNTIME_DEVICE_CUDA_CUDA_DEVICE_H_

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/device/cuda/cuda_calls.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/cuda/cuda_graph.h"
#include "runtime/device/cuda/device_kernels.h"
#include "runtime/device/cuda/event_pool.h"
#include "runtime/device/cuda/staging_pool.h"
#include "runtime/device/device.h"

namespace hvd {

class CudaDevice;

struct CudaDeviceOptions {
  uint32_t rank = 0;  // for messages
  int ordinal = 0;    // among the devices visible to the process
  CudaKernels kernels;
  // Another object of the same device, or null: they share errors that leave the context unusable.
  const CudaDevice* beside = nullptr;
};

class CudaDevice final : public Device {
 public:
  // `driver` has been initialised.
  static Result<std::unique_ptr<CudaDevice>> Open(const CudaDriver& driver,
                                                  const CudaDeviceOptions& options);
  // Waits for all work of the device, unless the context is unusable.
  ~CudaDevice() override;

  // Compute capability of the device (90 for sm_90), and its PCI address, which is equal in
  // processes that see the same device.
  int compute_capability() const { return context_->compute_capability(); }
  uint64_t place() const { return context_->place(); }

  // Calls `use` with the queue's native handle while the context is current: for libraries that
  // enqueue work on a stream, such as NCCL.
  Status With(const std::function<Status(CuStream stream)>& use);

  // Until EndCapture, enqueued work is captured instead of run. Only Move and With may be called
  // meanwhile. False: not possible now, retry. Requires a driver with the graph calls.
  Result<bool> BeginCapture();
  Result<std::unique_ptr<CudaGraph>> EndCapture();
  // Instead of EndCapture, from any thread: discards the captured work.
  void DropCapture();
  Status Launch(const CudaGraph& graph);

  const std::string& name() const override { return calls_.device(); }
  Status BeginAfter(void* stream) override;
  Result<DeviceMark> Mark(void* stream) override;
  Status BeginAfterMark(DeviceMark mark) override;
  void DropMark(DeviceMark mark) override;
  Status LetFollow(void* stream) override;
  Result<DeviceTicket> Record() override;
  Result<bool> Ready(DeviceTicket ticket) override;
  Result<DeviceAddress> Allocate(size_t bytes) override;
  Status Free(DeviceAddress address) override;
  // Waits for all enqueued work, for shutdown.
  Status Drain();
  Result<std::byte*> BorrowStaging(size_t bytes) override;
  Status ReturnStaging(std::byte* staging) override;
  Status CopyIn(DeviceAddress to, const std::byte* staging, size_t bytes) override;
  Status CopyOut(std::byte* staging, DeviceAddress from, size_t bytes) override;
  Status Move(const BatchSpec& spec, std::span<const BatchItem> items) override;
  Status Adasum(const AdasumStep& step) override;

 private:
  CudaDevice(const CudaDriver& driver, const CudaDeviceOptions& options);

  Status Start(const CudaDeviceOptions& options);
  Status RefuseCapture(void* stream);
  Status RefuseForeign(const std::byte* staging, size_t bytes) const;

  CudaCalls calls_;
  std::unique_ptr<CudaContext> context_;
  CuStream stream_ = nullptr;
  DeviceKernels kernels_{calls_};
  EventPool events_{calls_};
  StagingPool staging_{calls_, events_};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_CUDA_DEVICE_H_
