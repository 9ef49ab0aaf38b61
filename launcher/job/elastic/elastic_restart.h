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
void RestartIfIncomplete(ElasticChange& change);
// Slots came or went: the workers are started again in the number that fits, as under torchrun.
void RestartIfResized(ElasticChange& change);
void GoOnWithRestart(ElasticChange& change);
std::optional<TimePoint> NextRestart(const ElasticState& elastic);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_RESTART_H_
