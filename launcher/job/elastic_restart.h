// The workers of an elastic job whose script knows of no generations: it cannot go on with fewer
// ranks or more, so all of it is started again. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_RESTART_H_
#define HVD_LAUNCHER_JOB_ELASTIC_RESTART_H_

#include <optional>
#include <string>

#include "launcher/job/elastic_change.h"
#include "launcher/job/elastic_state.h"
#include "runtime/base/clock.h"

namespace hvd {

// `why`: a sentence.
void RestartAll(ElasticChange& change, const std::string& why);
// A worker went before any rank has called hvd.init(). If none does soon, the script knows of no
// generations, and the others wait for that worker in vain.
void NoteIncomplete(ElasticChange& change);
void RestartIfIncomplete(ElasticChange& change);
void GoOnWithRestart(ElasticChange& change);
std::optional<TimePoint> NextRestart(const ElasticState& elastic);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_RESTART_H_
