// StepMeter: how fast a rank trains, from the records of its trace ring, whatever its script is.
//
// A step is the time from one end of a collective to the next end of the one of that name: of the
// names that keep coming back, the one with most bytes. Pure; one thread at a time.
#ifndef HVD_LAUNCHER_TUNING_STEP_METER_H_
#define HVD_LAUNCHER_TUNING_STEP_METER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "timeline/ring.h"

namespace hvd {

struct TrainingStep {
  int64_t duration_ns = 0;
  uint64_t bytes = 0;    // of all collectives that ended in it
  int64_t begun_ns = 0;  // as the stamps
};

class StepMeter {
 public:
  // Records in their order, with stamps in nanoseconds. Appends the steps that they end.
  void Add(std::span<const TraceRecord> records, std::vector<TrainingStep>* steps);
  // Records were lost: the step under way is not counted.
  void Skip() { begun_ns_ = 0; }
  // Stands for the collectives of a step, their kinds and sizes in any order: equal in each run of
  // one model. 0 until two steps in a row were alike.
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

// Bytes per microsecond of a median step: a few that waited for data change nothing. 0 for none.
double ScoreOf(std::span<const TrainingStep> steps);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_STEP_METER_H_
