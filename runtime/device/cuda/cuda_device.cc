#include "runtime/device/cuda/cuda_device.h"

#include "runtime/base/text/format.h"

namespace hvd {

Result<std::unique_ptr<CudaDevice>> CudaDevice::Open(const CudaDriver& driver,
                                                     const CudaDeviceOptions& options) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(driver, options));
  Result<std::unique_ptr<CudaContext>> context =
      CudaContext::Retain(device->calls_, options.ordinal);
  if (!context.ok()) return context.status();
  device->context_ = std::move(*context);
  HVD_RETURN_IF_ERROR(device->Start(options));
  return device;
}

CudaDevice::CudaDevice(const CudaDriver& driver, const CudaDeviceOptions& options)
    : calls_(driver, options.rank, Format("CUDA device {}", options.ordinal),
             options.beside == nullptr ? nullptr : options.beside->calls_.health()) {}

Status CudaDevice::Start(const CudaDeviceOptions& options) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  const CudaDriver& driver = calls_.driver();
  int least = 0, greatest = 0;  // the highest priority is the smallest number
  Status status = calls_.Do(driver.ctx_get_stream_priority_range, &least, &greatest);
  if (status.ok()) {
    status = calls_.Do(driver.stream_create, &stream_, kCudaStreamNonBlocking, greatest);
  }
  return status.ok() ? kernels_.Load(options.kernels, compute_capability()) : status;
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return;  // the driver reclaims everything when the process exits
  const CudaDriver& driver = calls_.driver();
  if (stream_ != nullptr) driver.stream_synchronize(stream_);
  events_.DestroyAll();
  staging_.FreeAll();
  kernels_.Unload();
  if (stream_ != nullptr) driver.stream_destroy(stream_);
}

Status CudaDevice::With(const std::function<Status(CuStream stream)>& use) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return use(stream_);
}

// In relaxed mode, since another thread may end it, and since other threads must not be restricted.
Result<bool> CudaDevice::BeginCapture() {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  if (!CaptureGate::OfProcess().TryCapture()) return false;
  Status begun = calls_.Do(calls_.driver().stream_begin_capture, stream_, kCudaCaptureRelaxed);
  if (begun.ok()) return true;
  CaptureGate::OfProcess().EndCapture();
  return begun;
}

Result<std::unique_ptr<CudaGraph>> CudaDevice::EndCapture() {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) {
    DropCapture();
    return scope.status();
  }
  CuGraph captured = nullptr;
  const Status ended = calls_.Do(calls_.driver().stream_end_capture, stream_, &captured);
  CaptureGate::OfProcess().EndCapture();
  if (!ended.ok()) return ended;
  return CudaGraph::Make(calls_, context_->handle(), captured);
}

// In whatever state the context is: NCCL waits for the end of the graph.
void CudaDevice::DropCapture() {
  const CudaDriver& driver = calls_.driver();
  const bool entered = driver.ctx_push_current(context_->handle()) == kCudaSuccess;
  CuGraph captured = nullptr;
  driver.stream_end_capture(stream_, &captured);
  if (captured != nullptr) driver.graph_destroy(captured);
  CuContext before = nullptr;
  if (entered) driver.ctx_pop_current(&before);
  CaptureGate::OfProcess().EndCapture();
}

Status CudaDevice::Launch(const CudaGraph& graph) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return calls_.Do(calls_.driver().graph_launch, graph.handle(), stream_);
}

Status CudaDevice::BeginAfter(void* stream) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return events_.Order(static_cast<CuStream>(stream), stream_);
}

Result<DeviceMark> CudaDevice::Mark(void* stream) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  HVD_RETURN_IF_ERROR(RefuseCapture(stream));
  const Result<CuEvent> event = events_.Lend(static_cast<CuStream>(stream));
  if (!event.ok()) return event.status();
  return DeviceMark{reinterpret_cast<uintptr_t>(*event)};
}

Status CudaDevice::BeginAfterMark(DeviceMark mark) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  auto* event = reinterpret_cast<CuEvent>(static_cast<uintptr_t>(mark.handle));
  return calls_.Do(calls_.driver().stream_wait_event, stream_, event, 0U);
}

void CudaDevice::DropMark(DeviceMark mark) {
  events_.Release(reinterpret_cast<CuEvent>(static_cast<uintptr_t>(mark.handle)));
}

Status CudaDevice::LetFollow(void* stream) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  HVD_RETURN_IF_ERROR(RefuseCapture(stream));
  return events_.Order(stream_, static_cast<CuStream>(stream));
}

Result<DeviceTicket> CudaDevice::Record() {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return events_.Record(stream_);
}

Result<bool> CudaDevice::Ready(DeviceTicket ticket) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return events_.Ready(ticket);
}

Result<DeviceAddress> CudaDevice::Allocate(size_t bytes) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  CuAddress address = 0;
  HVD_RETURN_IF_ERROR(calls_.Do(calls_.driver().mem_alloc, &address, bytes));
  return DeviceAddress{address};
}

Status CudaDevice::Drain() {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return calls_.Do(calls_.driver().stream_synchronize, stream_);
}

Status CudaDevice::Free(DeviceAddress address) {
  // The queue does not synchronise with the default stream, so freeing alone would not wait for it.
  HVD_RETURN_IF_ERROR(Drain());
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return calls_.Do(calls_.driver().mem_free, address);
}

Result<std::byte*> CudaDevice::BorrowStaging(size_t bytes) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return staging_.Borrow(bytes);
}

Status CudaDevice::ReturnStaging(std::byte* staging) {
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return staging_.Return(staging, stream_);
}

Status CudaDevice::CopyIn(DeviceAddress to, const std::byte* staging, size_t bytes) {
  HVD_RETURN_IF_ERROR(RefuseForeign(staging, bytes));
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return calls_.Do(calls_.driver().memcpy_to_device, to, static_cast<const void*>(staging), bytes,
                   stream_);
}

Status CudaDevice::CopyOut(std::byte* staging, DeviceAddress from, size_t bytes) {
  HVD_RETURN_IF_ERROR(RefuseForeign(staging, bytes));
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  return calls_.Do(calls_.driver().memcpy_to_host, static_cast<void*>(staging), from, bytes,
                   stream_);
}

Status CudaDevice::Move(const BatchSpec& spec, std::span<const BatchItem> items) {
  const Result<std::vector<BatchLaunch>> launches = PlanBatch(spec, items);
  if (!launches.ok()) return launches.status();
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  for (const BatchLaunch& launch : *launches) {
    HVD_RETURN_IF_ERROR(kernels_.Launch(launch, stream_));
  }
  return Status::Ok();
}

Status CudaDevice::Adasum(const AdasumStep& step) {
  const Result<std::vector<AdasumLaunch>> launches = PlanAdasumStep(step);
  if (!launches.ok()) return launches.status();
  const ContextScope scope(calls_, *context_);
  if (!scope.status().ok()) return scope.status();
  for (const AdasumLaunch& launch : *launches) {
    HVD_RETURN_IF_ERROR(kernels_.Launch(launch, stream_));
  }
  return Status::Ok();
}

// Our queue would become part of the capture, and each replay would repeat the work without the
// other ranks.
Status CudaDevice::RefuseCapture(void* stream) {
  if (!calls_.broken().ok()) return calls_.broken();
  const CudaDriver& driver = calls_.driver();
  int status = kCudaCaptureNone;
  const CuResult answer = driver.stream_is_capturing(static_cast<CuStream>(stream), &status);
  if (answer == kCudaSuccess && status == kCudaCaptureNone) return Status::Ok();
  if (answer != kCudaSuccess && answer != kCudaCaptureImplicit)
    return calls_.Checked(driver.stream_is_capturing.symbol, answer);
  return Unsupported(
      calls_.device() +
      ": the stream is being captured for a CUDA graph (torch.cuda.graph), and ranks "
      "agree about each collective when it is called: call it outside of the graph");
}

// With other host memory a copy would wait for the device, or be made by the processor.
Status CudaDevice::RefuseForeign(const std::byte* staging, size_t bytes) const {
  if (staging_.IsLent(staging, bytes)) return Status::Ok();
  return InvalidArgument(
      Format("{} copies {} bytes from or to memory of the host that is not lent by BorrowStaging",
             calls_.device(), bytes));
}

}  // namespace hvd
