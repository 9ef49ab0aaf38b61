// StepMeter: measures training speed from the records of a rank's trace ring, independent of the
// script.
//
// A step is the time between two ends of the collective with the same name: of the recurring names,
// the one with most bytes. Pure; one thread at a time.
#ifndef HVD_LAUNCHER_TUNING_STEP_METER_H_
#define HVD_LAUNCHER_TUNING_STEP_METER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "runtime/trace/ring.h"

namespace hvd {

struct TrainingStep {
  int64_t duration_ns = 0;
  uint64_t bytes = 0;    // of the collectives that ended in it
  int64_t begun_ns = 0;  // on the clock of the stamps
};

class StepMeter {
 public:
  // Records in order, with stamps in nanoseconds. Appends the completed steps.
  void Add(std::span<const TraceRecord> records, std::vector<TrainingStep>* steps);
  // Records were lost: discards the current step.
  void Skip() { begun_ns_ = 0; }
  // A hash of a step's collectives, by kind and size, independent of order: equal in each run of a
  // model. 0 until two successive steps were equal.
  uint64_t signature() const { return signature_; }

 private:
  struct Name {
    uint64_t bytes = 0;
    size_t seen = 0;
  };

  void Count(const TraceRecord& record);
  void ChoosePivot(bool now);

  std::map<uint32_t, Name> names_;  // by id, since the pivot was chosen last
  uint32_t pivot_ = 0;              // 0: none yet
  size_t since_pivot_ = 0;          // operations
  size_t longest_ = 0;              // of the steps so far, in operations
  int64_t begun_ns_ = 0;
  uint64_t bytes_ = 0;
  uint64_t step_sum_ = 0, last_sum_ = 0;  // of the digests of the operations
  uint64_t signature_ = 0;
};

// Bytes per microsecond of the median step, robust against a few that waited for data. 0 without
// steps.
double ScoreOf(std::span<const TrainingStep> steps);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_STEP_METER_H_
