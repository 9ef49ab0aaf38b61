// CudaGraph: captured work of a device's queue that one call can launch repeatedly.
#ifndef HVD_RUNTIME_DEVICE_CUDA_CUDA_GRAPH_H_
#define HVD_RUNTIME_DEVICE_CUDA_CUDA_GRAPH_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_calls.h"

namespace hvd {

class CudaGraph {
 public:
  // `context` is current and outlives the graph. Takes ownership of `captured`.
  static Result<std::unique_ptr<CudaGraph>> Make(CudaCalls& calls, CuContext context,
                                                 CuGraph captured);
  // From any thread. Launches already enqueued run to completion.
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  CuGraphExec handle() const { return handle_; }

 private:
  CudaGraph(const CudaDriver& driver, CuContext context, CuGraphExec handle)
      : driver_(driver), context_(context), handle_(handle) {}

  const CudaDriver driver_;
  const CuContext context_;
  const CuGraphExec handle_;
};

// Keeps our captures and context-wide waits from overlapping: the driver would reject the wait and
// invalidate the capture. A wait that comes during a capture is deferred, and a capture begins only
// while no wait is in progress. One per process; any thread.
class CaptureGate {
 public:
  static CaptureGate& OfProcess() {
    static auto* gate = new CaptureGate;  // memory may be freed after static destruction
    return *gate;
  }

  // False: a wait is in progress; retry.
  bool TryCapture() {
    MutexLock lock(mutex_);
    if (waiting_ > 0) return false;
    ++capturing_;
    return true;
  }
  void EndCapture() {
    MutexLock lock(mutex_);
    --capturing_;
  }

  // Calls `wait`, which waits for a context: now, or if a capture is active in a later call of Run
  // or RunLate.
  void Run(std::function<void()> wait) {
    {
      MutexLock lock(mutex_);
      late_.push_back(std::move(wait));
    }
    RunLate();
  }
  void RunLate() {
    std::vector<std::function<void()>> due;
    {
      MutexLock lock(mutex_);
      if (capturing_ > 0) return;
      due = std::exchange(late_, {});
      ++waiting_;
    }
    for (const auto& wait : due) wait();
    MutexLock lock(mutex_);
    --waiting_;
  }

 private:
  Mutex mutex_;
  int capturing_ HVD_GUARDED_BY(mutex_) = 0, waiting_ HVD_GUARDED_BY(mutex_) = 0;
  std::vector<std::function<void()>> late_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_CUDA_GRAPH_H_
