// Too few ranks for a generation of an elastic job: the missing ones are named while the job waits
// for them, and --elastic-timeout ends it. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SHORTAGE_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SHORTAGE_H_

#include <optional>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/elastic_state.h"
#include "runtime/base/clock.h"

namespace hvd {

void WatchShortage(ElasticChange& change);
std::optional<TimePoint> NextShortageReport(const ElasticState& elastic);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SHORTAGE_H_
