// Goodput: how much of the time of an elastic job its ranks could train: from the beginning of a
// generation until it breaks or a rank leaves it, without a last wait in a collective that never
// ended. Steps that were repeated after a loss count as trained. Pure.
#ifndef HVD_LAUNCHER_JOB_POLICY_GOODPUT_H_
#define HVD_LAUNCHER_JOB_POLICY_GOODPUT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/clock.h"

namespace hvd {

class Goodput {
 public:
  // Workers are started; the first call begins the time of the job.
  void NoteStart(TimePoint now);
  // A generation runs from now on, or no longer.
  void SetTraining(bool training, TimePoint now);
  // How long a rank of the host has waited in a collective of the running generation; zero: the
  // collective ended, and the wait counts as training.
  void SetIdle(uint32_t host, Duration idle, TimePoint now);
  void NoteEnd(TimePoint now);
  // Excludes this much time, in which the job was stopped.
  void Shift(Duration away);

  // Up to the end; zero before the start.
  Duration total() const;
  Duration trained() const { return trained_; }
  // "ranks were training for 41.2 s of 43.8 s (94 %)".
  std::string Text() const;

  // All that changes, for the record of a takeover (takeover/job_record.h).
  static void RecordFields(auto& f, auto& m) {
    f(m.began_, m.training_since_, m.idle_since_, m.ended_, m.trained_);
  }

 private:
  std::optional<TimePoint> began_, training_since_;
  std::map<uint32_t, TimePoint> idle_since_;  // by host
  TimePoint ended_{};
  Duration trained_{};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_POLICY_GOODPUT_H_
