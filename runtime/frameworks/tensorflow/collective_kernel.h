// CollectiveKernel: the kernel of a collective, for a graph node or an eager op. Its calls are
// submitted and completed by a callback of the runtime, so no TensorFlow thread waits.
#ifndef HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_COLLECTIVE_KERNEL_H_
#define HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_COLLECTIVE_KERNEL_H_

#include <cstdint>
#include <string>

#include "hvd/hvd.h"
#include "runtime/frameworks/tensorflow/tf_api.h"

namespace hvd::tf {

class CollectiveKernel {
 public:
  // Null on failure, which has been reported to `construction`.
  static CollectiveKernel* Create(Construction* construction, hvd_collective collective);

  void ComputeAsync(Context* context, DoneArgument* done) const;

 private:
  bool Read(Construction* construction, Status* status);

  hvd_collective collective_ = HVD_ALLREDUCE;
  bool unnamed_ = false;  // named by the runtime's call counter: eager calls outside a graph
  std::string name_;
  int32_t process_set_ = 0;
  int32_t reduce_op_ = HVD_SUM;
  int32_t root_rank_ = 0;
  double prescale_ = 1, postscale_ = 1;
  int64_t wait_us_ = 0;
};

}  // namespace hvd::tf

#endif  // HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_COLLECTIVE_KERNEL_H_
