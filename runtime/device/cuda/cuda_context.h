// CudaContext: the primary context of a device, shared by the whole process; the framework's
// tensors live in it. Retained for the lifetime of this object. ContextScope makes it current for a
// few calls and restores the previous one. It uses the relaxed capture mode, so its calls do not
// break a CUDA graph capture of the application, whatever thread makes them.
#ifndef HVD_RUNTIME_DEVICE_CUDA_CUDA_CONTEXT_H_
#define HVD_RUNTIME_DEVICE_CUDA_CUDA_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_calls.h"

namespace hvd {

class CudaContext {
 public:
  // Sets the device name in `calls`, which must outlive this.
  static Result<std::unique_ptr<CudaContext>> Retain(CudaCalls& calls, int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  CuContext handle() const { return handle_; }
  int compute_capability() const { return facts_.compute_capability; }
  uint64_t place() const { return facts_.place; }

  struct Facts {
    std::string name;            // "CUDA device 1 (NVIDIA H200, sm_90)"
    int compute_capability = 0;  // 90 for sm_90
    uint64_t place = 0;          // PCI address on this host
  };

 private:
  CudaContext(CudaCalls& calls, CuDevice device, CuContext handle, Facts facts)
      : calls_(calls), device_(device), handle_(handle), facts_(std::move(facts)) {}

  CudaCalls& calls_;
  const CuDevice device_;
  const CuContext handle_;
  const Facts facts_;
};

class ContextScope {
 public:
  ContextScope(CudaCalls& calls, const CudaContext& context)
      : calls_(calls), status_(Enter(context)) {}
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  // Not ok: the context is not current and no call may be made.
  const Status& status() const { return status_; }

 private:
  Status Enter(const CudaContext& context);

  CudaCalls& calls_;
  int capture_mode_ = kCudaCaptureRelaxed;  // the thread's previous mode
  const Status status_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_CUDA_CONTEXT_H_
