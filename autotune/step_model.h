// StepModel: how long a step of training takes for each threshold of fusion between hosts, known
// before any other threshold is tried. The cost of the exchange between hosts and the moments when
// tensors become ready are taken from steps that have run; the rest is a simulation of the queue in
// which tensors wait for each other.
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

// One exchange between hosts that has run.
struct ExchangeSample {
  double bytes = 0;        // of all its tensors, above 0
  size_t tensors = 1;      // that travelled together
  double exchange_us = 0;  // above 0; without the copies
  double copy_us = 0;      // into one message and out of it
  double weight = 1;       // above 0: how much this sample counts
};

// An exchange takes alpha + beta * bytes; of several tensors, gamma * bytes more.
struct ExchangeCosts {
  double alpha_us = 0;           // of an exchange, however small
  double beta_us_per_byte = 0;   // of a byte on its way, sums included
  double gamma_us_per_byte = 0;  // of a byte that is copied into one message and out of it

  double Of(double bytes, size_t tensors) const;
};

// None of the costs is negative. kInvalidArgument where the samples cannot tell alpha from beta:
// fewer than 8, or the largest has not 4 times the bytes of the smallest.
Result<ExchangeCosts> FitCosts(std::span<const ExchangeSample> samples);

// One collective between hosts in a step that has run.
struct ObservedOperation {
  double ready_us = 0;  // since any moment: this host had the tensor ready
  double done_us = 0;   // since the same moment
  double bytes = 0;
  bool fuses = true;  // it may travel with its neighbours: an allreduce that sums
};

class StepModel {
 public:
  // `operations` of one step in any order, `period_us` from this step to the next. The end of the
  // step is found where nothing is under way for the longest time. kInvalidArgument where there are
  // fewer than 2 operations, where a value is not a number, and where no such moment exists: steps
  // that overlap are not predicted.
  static Result<StepModel> Make(const ExchangeCosts& costs,
                                std::vector<ObservedOperation> operations, double period_us);

  // The time of a step where at most `fusion_bytes`, at least 1, travel together.
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
