// DriverAbsence: the decisions of an agent while it has no connection to its driver, or receives
// nothing over it: how long the driver may stay away, how much output of the workers is kept for
// it, and when silence means that it is lost. Pure: the time is passed in.
#ifndef HVD_LAUNCHER_AGENT_DRIVER_ABSENCE_H_
#define HVD_LAUNCHER_AGENT_DRIVER_ABSENCE_H_

#include <algorithm>
#include <cstddef>
#include <utility>

#include "runtime/base/clock.h"

namespace hvd {

class DriverAbsence {
 public:
  // Bytes that workers may print while there is no connection; then they block.
  static constexpr size_t kMostHeldBytes = 1024 * 1024;
  // Limit of the wait for the driver in a job that is already ending.
  static constexpr Duration kEndingGrace = std::chrono::seconds(5);

  // How long the driver may stay away; 0: a lost connection ends the job here.
  void set_grace(Duration grace) { grace_ = grace; }
  // The driver has begun to end the job.
  void NoteEnding() { ending_ = true; }
  // The workers are stopped, and so is the driver: its silence means nothing.
  void set_paused(bool paused) { paused_ = paused; }
  // How long the driver may be silent; 0: no limit.
  void set_silence_limit(Duration limit) { silence_limit_ = limit; }

  bool away() const { return away_; }
  // The connection is lost. False: it was lost already. True: the driver may come back within
  // grace().
  bool Begin() {
    held_bytes_ = away_ ? held_bytes_ : 0;
    return !std::exchange(away_, true);
  }
  Duration grace() const { return ending_ ? std::min(grace_, kEndingGrace) : grace_; }
  // The driver is back.
  void End() { away_ = false; }
  // The driver will not come back: output is dropped from now on.
  void GiveUp() { over_ = true; }
  bool over() const { return over_; }

  // Output that is kept for the driver.
  void NoteOutput(size_t bytes) { held_bytes_ += away_ ? bytes : 0; }
  // Workers may print although nothing can be sent.
  bool HasRoom() const { return over_ || (away_ && held_bytes_ < kMostHeldBytes); }

  // The driver has been silent for too long on a connection that seems to work.
  bool IsSilent(TimePoint last_heard, TimePoint now) const {
    return silence_limit_ > Duration::zero() && !paused_ && now - last_heard >= silence_limit_;
  }
  Duration silence_limit() const { return silence_limit_; }

 private:
  Duration grace_{}, silence_limit_{};
  bool away_ = false, over_ = false, ending_ = false, paused_ = false;
  size_t held_bytes_ = 0;  // since the connection was lost
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_DRIVER_ABSENCE_H_
