// ExchangeMeter: the inputs of a step model, from the records of a trace ring: the costs of
// exchanges between hosts, and when the tensors of a step become ready. Pure; one thread at a time.
//
// It needs the activities of operations, which a rank records only where they are wanted.
#ifndef HVD_LAUNCHER_TUNING_EXCHANGE_METER_H_
#define HVD_LAUNCHER_TUNING_EXCHANGE_METER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "autotune/step_model.h"
#include "launcher/tuning/step_meter.h"
#include "timeline/ring.h"

namespace hvd {

class ExchangeMeter {
 public:
  // Records in their order, with stamps in nanoseconds.
  void Add(std::span<const TraceRecord> records);
  // More is not kept, and nothing more is to be recorded for it: of a script without steps the
  // warm-up may never end.
  bool full() const;
  // Records were lost: the operation under way is not counted.
  void Skip() { activities_.clear(); }

  // The model of the median one of `steps`, which a StepMeter has found in the same records. Not
  // ok: one sentence why nothing can be predicted. Its prediction for `fusion_bytes`, which the
  // steps had, is near what they took.
  Result<StepModel> Model(std::span<const TrainingStep> steps, double fusion_bytes) const;

 private:
  void End(const TraceRecord& done);

  size_t ended_ = 0;                     // operations, with exchanges or without
  std::vector<TraceRecord> activities_;  // of the operation that comes next in the ring
  std::vector<ExchangeSample> samples_;
  std::vector<ObservedOperation> operations_;  // in microseconds of the stamps
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_EXCHANGE_METER_H_
