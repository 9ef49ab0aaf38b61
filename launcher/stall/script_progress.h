// ScriptProgress: what the readings of one worker over time say about it. Pure: the time is an
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

// What /proc says about a worker at one moment. The counts only grow.
struct ScriptReading {
  int32_t pid = 0;    // of its Python
  std::string state;  // of the main thread, as the next two
  std::string blocked_in;
  uint64_t sleeps = 0;       // how often it has gone to sleep
  uint64_t cpu_ticks = 0;    // of its processes, 100 a second
  uint64_t bytes_moved = 0;  // by its processes
};

class ScriptProgress {
 public:
  explicit ScriptProgress(Duration warning) : warning_(warning) {}

  // It has written something, or a collective of ours has moved on.
  void NoteSign(TimePoint now);
  void Take(ScriptReading reading, TimePoint now);
  // Its stacks were read, or could not be, and why.
  void TakeStacks(const ForeignCall& call, TimePoint now);
  void TakeTrouble(std::string trouble, TimePoint now);

  // It has shown nothing for half of the warning time.
  bool IsSilent(TimePoint now) const { return now - sign_ >= warning_ / 2; }
  // It is time to read its stacks: it is silent, and they were not read within the warning time.
  bool WantsStacks(TimePoint now) const;
  ScriptObservation Observe(uint32_t worker, TimePoint now) const;

 private:
  const Duration warning_;
  TimePoint sign_{}, still_since_{}, sampled_{}, same_since_{};
  bool asked_ = false;                                        // for stacks, since it was silent
  std::deque<std::pair<TimePoint, ScriptReading>> readings_;  // of a part of the warning time
  std::optional<ForeignCall> call_;
  std::string trouble_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_SCRIPT_PROGRESS_H_
