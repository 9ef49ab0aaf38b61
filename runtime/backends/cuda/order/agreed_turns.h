// AgreedTurns: batches of operations that several hosts have agreed on, in the order in which this
// rank gives them to its GPU. A rank learns of them in any order; a batch has its turn after all
// before it, so ranks that share several have them in the same order, whatever their process sets,
// and cannot deadlock. A plain state machine.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_ORDER_AGREED_TURNS_H_
#define HVD_RUNTIME_BACKENDS_CUDA_ORDER_AGREED_TURNS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/backends/agreement.h"
#include "runtime/base/status.h"

namespace hvd {

struct CudaOp;

class AgreedTurns {
 public:
  struct Batch {
    std::vector<CudaOp*> ops;  // by place; null: this rank has not learned of it
    size_t known = 0;
    bool begun = false;  // and its operations may be gone
  };

  // Not ok, once: the agreement is inconsistent.
  Status Add(const Agreement& agreed, CudaOp* op);
  // The batch whose turn it is, once this rank knows all of it; null after a failure.
  Batch* Next();
  // The next batch is given to the device, or takes another route.
  void Pass();

  // An agreed operation will never have its turn, nor will those after it.
  void Fail(Status why) {
    if (failure_.ok()) failure_ = std::move(why);
    batches_.clear();
  }
  const Status& failure() const { return failure_; }

 private:
  std::map<uint64_t, Batch> batches_;
  uint64_t next_ = 1;
  Status failure_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_ORDER_AGREED_TURNS_H_
