// CudaGraph: work of a device's queue that was captured instead of done, and that one call gives to
// the queue again and again.
#ifndef HVD_RUNTIME_DEVICE_CUDA_CUDA_GRAPH_H_
#define HVD_RUNTIME_DEVICE_CUDA_CUDA_GRAPH_H_

#include <memory>

#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_calls.h"

namespace hvd {

class CudaGraph {
 public:
  // `context` is current, and outlives the graph. `captured` is this function's to destroy.
  static Result<std::unique_ptr<CudaGraph>> Make(CudaCalls& calls, CuContext context,
                                                 CuGraph captured);
  // From any thread. Work that the queue has been given goes on to its end.
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

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_CUDA_GRAPH_H_
