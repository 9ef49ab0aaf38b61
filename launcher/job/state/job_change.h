// JobChange: one event's worth of work on the state of a job. Its parts decide one after another
// what follows from the event, and gather it here. Plain; for the time of one event.
#ifndef HVD_LAUNCHER_JOB_STATE_JOB_CHANGE_H_
#define HVD_LAUNCHER_JOB_STATE_JOB_CHANGE_H_

#include <string>
#include <utility>

#include "launcher/job/state/job_state.h"
#include "runtime/base/clock.h"

namespace hvd {

struct JobChange {
  JobState& state;
  const TimePoint now;
  Decision decision = {};

  void Do(auto action) { decision.actions.emplace_back(std::move(action)); }
  // For the log; the last one counts.
  void SetReason(std::string reason) { decision.reason = std::move(reason); }
  // A line for the user.
  void Notify(std::string sentence) { Do(NotifyUser{std::move(sentence)}); }
  // It gets ready or runs; later it only ends.
  bool AtWork() const { return state.at_work(); }
  // And goes on without a rank or host that is lost, or with others in its place.
  bool MayReplace() const { return state.policy().outlives_losses && AtWork(); }
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_STATE_JOB_CHANGE_H_
