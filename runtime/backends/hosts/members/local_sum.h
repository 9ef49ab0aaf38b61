// LocalSum: combines the inputs of the members on one host into memory of the leader, in chunks.
// Any thread may claim a chunk: those of waiting members, and the leader's inter-host thread, which
// never waits for them.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_LOCAL_SUM_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_LOCAL_SUM_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "runtime/backends/collective.h"
#include "runtime/backends/hosts/members/result_status.h"
#include "runtime/device/host_reduce.h"

namespace hvd {

// The type of sums between hosts: float32 for the small floating types, so that they are rounded
// once; for integers scaled or divided afterwards, a type that holds the sum.
constexpr DType InterHostType(const CollectiveCall& call) {
  const bool average = call.op == ReduceOp::kAverage || call.op == ReduceOp::kActiveAverage;
  const bool scaled = average || (call.op == ReduceOp::kSum && call.postscale != 1.0);
  return IsNarrow(call.dtype) || (IsInteger(call.dtype) && scaled) ? AccumulatorOf(call.dtype)
                                                                   : call.dtype;
}

class LocalSum {
 public:
  LocalSum() = default;
  // `inputs` in rank order; `sum` has room for call.count elements of InterHostType; `at_work` is
  // of this member.
  LocalSum(const CollectiveCall& call, std::vector<const void*> inputs, void* sum,
           ResultStatus* result_status, WorkMark* at_work);

  // True if the work is too small to ask for help.
  bool IsSmall() const;
  // Does chunks until none is left. True when all are finished, by any thread.
  bool Help();
  // No more chunks are claimed. True when those claimed are finished. For the leader alone, on one
  // object.
  bool Stop();

 private:
  uint64_t chunks() const { return (count_ + chunk_ - 1) / chunk_; }
  void Combine(size_t first, size_t count);

  ReduceSpec spec_;
  bool wide_ = false;  // the sum is of another type than the inputs
  std::vector<const void*> inputs_;
  void* sum_ = nullptr;
  ResultStatus* result_status_ = nullptr;
  WorkMark* at_work_ = nullptr;
  size_t count_ = 0, chunk_ = 1;
  std::optional<uint64_t> taken_;  // chunks, before the stop
};

// Combines the hosts' sums (of InterHostType) in their order, applies the scales, and stores
// `output` in the call's type. `output` may start where one of the inputs does. `divisor`: from
// DivisorOf.
void FinishSum(const CollectiveCall& call, uint32_t divisor, std::span<const void* const> inputs,
               void* output, size_t count);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_LOCAL_SUM_H_
