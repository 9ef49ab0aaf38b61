// StepModel: predicts the duration of a training step for each fusion threshold between hosts,
// without trying other thresholds. The costs of exchanges between hosts and the times at which
// tensors become ready come from measured steps; the rest is a simulation of the queue of tensors.
//
// Pure: no clock, thread or rank. Times are microseconds, sizes are bytes.
#ifndef HVD_AUTOTUNE_STEP_MODEL_H_
#define HVD_AUTOTUNE_STEP_MODEL_H_

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

// A measured exchange between hosts.
struct ExchangeSample {
  double bytes = 0;        // of all its tensors, above 0
  size_t tensors = 1;      // fused into one exchange
  double exchange_us = 0;  // above 0; without the copies
  double copy_us = 0;      // packing and unpacking
  double weight = 1;       // above 0: weight of the sample
};

// An exchange takes alpha + beta * bytes; of several tensors, gamma * bytes more.
struct ExchangeCosts {
  double alpha_us = 0;           // per exchange
  double beta_us_per_byte = 0;   // transfer and reduction
  double gamma_us_per_byte = 0;  // packing and unpacking

  double Of(double bytes, size_t tensors) const;
};

// Non-negative costs. kInvalidArgument if the samples cannot separate alpha from beta: fewer than
// 8, or the largest has less than 4 times the bytes of the smallest.
Result<ExchangeCosts> FitCosts(std::span<const ExchangeSample> samples);

// A collective between hosts in a measured step.
struct ObservedOperation {
  double ready_us = 0;  // when this host had the tensor ready, with an arbitrary origin
  double done_us = 0;   // with the same origin
  double bytes = 0;
  bool fuses = true;  // it may be fused: a summing allreduce
};

class StepModel {
 public:
  // `operations` of one step in any order, `period_us` from this step to the next. The step ends at
  // its longest idle gap. kInvalidArgument for fewer than 2 operations, for values that are not
  // finite, and without such a gap: overlapping steps are not predicted.
  static Result<StepModel> Make(const ExchangeCosts& costs,
                                std::vector<ObservedOperation> operations, double period_us);

  // The duration of a step with this fusion threshold, at least 1.
  double StepUs(double fusion_bytes) const;

 private:
  struct Tensor {
    double ready_us = 0, bytes = 0;
    bool fuses = true;
  };

  StepModel(const ExchangeCosts& costs, std::vector<Tensor> tensors, double rest_us)
      : costs_(costs), tensors_(std::move(tensors)), rest_us_(rest_us) {}

  ExchangeCosts costs_;
  std::vector<Tensor> tensors_;  // as they become ready, the first at 0
  double rest_us_ = 0;           // from the end of the last exchange to the next step
};

}  // namespace hvd

#endif  // HVD_AUTOTUNE_STEP_MODEL_H_
