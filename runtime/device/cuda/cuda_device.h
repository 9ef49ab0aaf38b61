// CudaDevice: a Device over the CUDA driver, in the primary context of the process. Its queue is a
// stream of its own with the highest priority, which does not wait for the default stream.
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
  uint32_t rank = 0;  // for sentences
  int ordinal = 0;    // among those that the process sees
  CudaKernels kernels;
  // Another object of the same device, if there is one: an error that leaves the context unusable
  // is that of both.
  const CudaDevice* beside = nullptr;
};

class CudaDevice final : public Device {
 public:
  // `driver` was started.
  static Result<std::unique_ptr<CudaDevice>> Open(const CudaDriver& driver,
                                                  const CudaDeviceOptions& options);
  // Waits until the device is done with all it has, unless the context is unusable.
  ~CudaDevice() override;

  // Of the device: compute capability (90 for sm_90), and where it is plugged in, which is equal
  // for processes that see the same one.
  int compute_capability() const { return context_->compute_capability(); }
  uint64_t place() const { return context_->place(); }

  // Calls `use` with the native handle of the queue while the context is current: for libraries
  // that give work to a stream, as NCCL does.
  Status With(const std::function<Status(CuStream stream)>& use);

  // Until EndCapture, work that the queue is given is kept, and not done. Only Move and With may be
  // called meanwhile. False: not now, the caller asks again. The driver has the calls for graphs.
  Result<bool> BeginCapture();
  Result<std::unique_ptr<CudaGraph>> EndCapture();
  // Instead of EndCapture, from any thread: the work is forgotten.
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
  // Waits until the device has done all that it was given: for ends.
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
