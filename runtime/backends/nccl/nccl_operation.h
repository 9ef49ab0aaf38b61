// NcclOperation: executes a plan in the queue of a device, over a communicator. Nothing blocks. One
// thread, as for NcclComm and Device.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_NCCL_OPERATION_H_
#define HVD_RUNTIME_BACKENDS_NCCL_NCCL_OPERATION_H_

#include <cstddef>
#include <utility>

#include "runtime/backends/nccl/nccl_comm.h"
#include "runtime/backends/nccl/nccl_plan.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_device.h"

namespace hvd {

class NcclOperation {
 public:
  // The communicator is ready and has no other unfinished operation, that is, begun and not all in
  // the queue.
  NcclOperation(NcclPlan plan, NcclComm& comm, CudaDevice& device)
      : plan_(std::move(plan)), comm_(comm), device_(device) {}

  // True once all of it is in the queue; a ticket of the device then tells its end. False: NCCL
  // still works on the calls; call again. After an error the outputs are undefined and the
  // communicator has to be aborted.
  Result<bool> Advance();

 private:
  enum class Stage { kBefore, kCalls, kAfter, kGiven };

  const NcclPlan& plan() const { return next_ == 0 ? plan_ : plan_.then[next_ - 1]; }
  Result<bool> AdvanceOne();
  Status GiveCalls();
  Status GiveRest();
  Status DropPreMultiply();

  const NcclPlan plan_;
  NcclComm& comm_;
  CudaDevice& device_;
  size_t next_ = 0;               // of plan_ and its `then`
  Stage stage_ = Stage::kBefore;  // of that one
  NcclReduceOp pre_multiplied_ = kNcclPreMultiplied;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_NCCL_OPERATION_H_
