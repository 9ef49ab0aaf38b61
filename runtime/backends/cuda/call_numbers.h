// CallNumbers: a number for each allreduce that this rank makes on the world, the same when all of
// it is the same as before, the addresses of its tensors, too. Two different calls never have the
// same one, so the numbers of all members tell whether all of them repeat a call exactly. One
// thread.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_CALL_NUMBERS_H_
#define HVD_RUNTIME_BACKENDS_CUDA_CALL_NUMBERS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <tuple>

#include "runtime/backends/collective.h"

namespace hvd {

class CallNumbers {
 public:
  // From 1 on; 0: the call has none.
  uint32_t NumberOf(const CollectiveCall& call) {
    if (call.collective != Collective::kAllreduce || call.group->id != 0) return 0;
    if (last_ == std::numeric_limits<uint32_t>::max()) return 0;
    if (numbers_.size() >= kMost) numbers_.clear();  // what comes again is numbered anew
    uint32_t& number = numbers_[{call.op, call.dtype, call.count, call.prescale, call.postscale,
                                 call.input, call.output, call.device_index}];
    if (number == 0) number = ++last_;
    return number;
  }

 private:
  static constexpr size_t kMost = 4096;

  std::map<std::tuple<ReduceOp, DType, size_t, double, double, const void*, const void*, int32_t>,
           uint32_t>
      numbers_;
  uint32_t last_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CALL_NUMBERS_H_
