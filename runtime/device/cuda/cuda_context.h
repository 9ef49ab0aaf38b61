// CudaContext: the primary context of a device, which all of a process shares: the framework's
// tensors live in it. Retained while this lives. ContextScope makes it current for a few calls and
// leaves what was current before. Its calls are of no concern to a capture of the program's for a
// CUDA graph, so they do not break it, whatever thread makes them.
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
  // `calls`, which must outlive this, gets the name of the device.
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
    uint64_t place = 0;          // on the bus of this host
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

  // Not ok: the context is not current, and nothing may be called.
  const Status& status() const { return status_; }

 private:
  Status Enter(const CudaContext& context);

  CudaCalls& calls_;
  int capture_mode_ = kCudaCaptureRelaxed;  // of this thread, before
  const Status status_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_CUDA_CONTEXT_H_
