// All workers of an elastic job are started again together: where --elastic-restart says so, and
// where the script knows of no generations, so that it cannot go on with fewer ranks or more. Pure.
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
// A worker went before any rank has called hvd.init(). If none does soon, the script knows of no
// generations, and the others wait for that worker in vain.
void NoteIncomplete(ElasticChange& change);
// A worker is missing, or slots came or went: the workers are to be started again in the number
// that fits, as under torchrun.
struct RestartPlan {
  std::string why;  // a sentence; empty: not now
  // Since when slots came or went, and when to look again.
  std::optional<TimePoint> resize_since, resize_at;
};
RestartPlan PlanRestart(const ElasticChange& change);
// All have ended: they are started again. Those that outlive SIGTERM get SIGKILL.
void GoOnWithRestart(ElasticChange& change);
std::optional<TimePoint> NextRestart(const ElasticState& elastic);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_RESTART_H_
