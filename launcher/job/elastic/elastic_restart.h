// All workers of an elastic job are started again together: where --elastic-restart says so, and
// where the script does not use generations, so that it cannot continue with a different number of
// ranks. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_RESTART_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_RESTART_H_

#include <optional>
#include <string>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/elastic_state.h"
#include "runtime/base/clock.h"

namespace hvd {

// `why`: a sentence.
void RestartAll(ElasticChange& change, const std::string& why);
// A worker ended before any rank called hvd.init(). If no rank calls it soon, the script does not
// use generations, and the other workers would wait for the missing one forever.
void NoteIncomplete(ElasticChange& change);
// A worker is missing, or the number of slots changed: the workers are to be restarted in the
// number that fits, as under torchrun.
struct RestartPlan {
  std::string why;  // a sentence; empty: not now
  // Since when the number of slots has differed, and when to check again.
  std::optional<TimePoint> resize_since, resize_at;
};
RestartPlan PlanRestart(const ElasticChange& change);
// Restarts the workers once all have ended. Those that survive SIGTERM get SIGKILL.
void ContinueRestart(ElasticChange& change);
std::optional<TimePoint> NextRestart(const ElasticState& elastic);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_RESTART_H_
