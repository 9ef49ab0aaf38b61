// ExchangeMeter: the inputs of a step model, from the records of a trace ring: the costs of
// exchanges between hosts, and when the tensors of a step become ready. Pure; one thread at a time.
//
// Requires the activities of operations, which a rank records only on request.
#ifndef HVD_LAUNCHER_TUNING_EXCHANGE_METER_H_
#define HVD_LAUNCHER_TUNING_EXCHANGE_METER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "autotune/step_model.h"
#include "launcher/tuning/step_meter.h"
#include "runtime/trace/ring.h"

namespace hvd {

class ExchangeMeter {
 public:
  // Records in order, with stamps in nanoseconds.
  void Add(std::span<const TraceRecord> records);
  // The memory limit is reached; recording can stop. A script without steps may never end the
  // warm-up.
  bool full() const;
  // Records were lost: discards the current operation.
  void Skip() { activities_.clear(); }

  // The model of the median one of `steps`, found by a StepMeter in the same records.
  // `fusion_bytes`: of these steps; the model's prediction for it is close to their duration. Not
  // ok: one sentence why no prediction is possible.
  Result<StepModel> Model(std::span<const TrainingStep> steps, double fusion_bytes) const;

 private:
  void End(const TraceRecord& done);

  size_t ended_ = 0;                     // operations, with or without exchanges
  std::vector<TraceRecord> activities_;  // of the next operation in the ring
  std::vector<ExchangeSample> samples_;
  std::vector<ObservedOperation> operations_;  // in microseconds of the stamps
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_EXCHANGE_METER_H_
