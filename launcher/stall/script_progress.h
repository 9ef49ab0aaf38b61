// ScriptProgress: judges the progress of one worker by readings over time. Pure: the time is an
// argument.
#ifndef HVD_LAUNCHER_STALL_SCRIPT_PROGRESS_H_
#define HVD_LAUNCHER_STALL_SCRIPT_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "launcher/stall/verdict/foreign_call.h"
#include "launcher/wire/rank_facts.h"
#include "runtime/base/clock.h"

namespace hvd {

// Data of /proc about a worker at one moment. The counts are monotonic.
struct ScriptReading {
  int32_t pid = 0;    // of its Python process
  std::string state;  // this and the next two: of the main thread
  std::string blocked_in;
  uint64_t sleeps = 0;       // voluntary context switches
  uint64_t cpu_ticks = 0;    // of all its processes, 100 per second
  uint64_t bytes_moved = 0;  // by all its processes
};

class ScriptProgress {
 public:
  explicit ScriptProgress(Duration warning) : warning_(warning) {}

  // It wrote output, or a collective of this runtime progressed.
  void NoteSign(TimePoint now);
  void AddReading(ScriptReading reading, TimePoint now);
  // Its stacks were read, or could not be read for the reason `trouble`.
  void NoteStacks(const ForeignCall& call, TimePoint now);
  void NoteTrouble(std::string trouble, TimePoint now);

  // No sign of progress for half of the warning time.
  bool IsSilent(TimePoint now) const { return now - sign_ >= warning_ / 2; }
  // Its stacks are due: it is silent, and they were not read within the warning time.
  bool WantsStacks(TimePoint now) const;
  ScriptObservation Observe(uint32_t worker, TimePoint now) const;

 private:
  const Duration warning_;
  TimePoint sign_{}, still_since_{}, sampled_{}, same_since_{};
  bool asked_ = false;  // stacks were requested since it fell silent
  std::deque<std::pair<TimePoint, ScriptReading>> readings_;  // covering a part of the warning time
  std::optional<ForeignCall> call_;
  std::string trouble_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_SCRIPT_PROGRESS_H_
