#include "runtime/device/cuda/cuda_graph.h"

namespace hvd {

Result<std::unique_ptr<CudaGraph>> CudaGraph::Make(CudaCalls& calls, CuContext context,
                                                   CuGraph captured) {
  const CudaDriver& driver = calls.driver();
  CuGraphExec made = nullptr;
  Status status = calls.Do(driver.graph_instantiate, &made, captured, 0ULL);
  // NCCL waits for the end of a graph, so it is destroyed in any case.
  const CuResult dropped = driver.graph_destroy(captured);
  if (!status.ok()) return status;
  if (dropped != kCudaSuccess) {
    driver.graph_exec_destroy(made);
    return calls.Checked(driver.graph_destroy.symbol, dropped);
  }
  return std::unique_ptr<CudaGraph>(new CudaGraph(driver, context, made));
}

// Destroyed in whatever state the context is: NCCL waits for it.
CudaGraph::~CudaGraph() {
  const bool entered = driver_.ctx_push_current(context_) == kCudaSuccess;
  driver_.graph_exec_destroy(handle_);
  CuContext before = nullptr;
  if (entered) driver_.ctx_pop_current(&before);
}

}  // namespace hvd
