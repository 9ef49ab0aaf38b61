// CollectiveKernel: one node of a graph, or one kind of eager call, that is a collective. Its calls
// are submitted and end by a callback of the runtime, so no thread of TensorFlow waits.
#ifndef HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_COLLECTIVE_KERNEL_H_
#define HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_COLLECTIVE_KERNEL_H_

#include <cstdint>
#include <string>

#include "hvd/hvd.h"
#include "runtime/frameworks/tensorflow/tf_api.h"

namespace hvd::tf {

class CollectiveKernel {
 public:
  // Null after it has told the construction why.
  static CollectiveKernel* Create(Construction* construction, hvd_collective collective);

  void ComputeAsync(Context* context, DoneArgument* done) const;

 private:
  bool Read(Construction* construction, Status* status);

  hvd_collective collective_ = HVD_ALLREDUCE;
  bool unnamed_ =
      false;  // the runtime counts the calls: those of a program that are not in a graph
  std::string name_;
  int32_t process_set_ = 0;
  int32_t reduce_op_ = HVD_SUM;
  int32_t root_rank_ = 0;
  double prescale_ = 1, postscale_ = 1;
  int64_t wait_us_ = 0;
};

}  // namespace hvd::tf

#endif  // HVD_RUNTIME_FRAMEWORKS_TENSORFLOW_COLLECTIVE_KERNEL_H_
