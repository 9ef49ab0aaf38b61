// The seats of an elastic job: on which slots workers are started, and which workers leave because
// their slot is no longer there. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SEATS_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SEATS_H_

#include <chrono>
#include <cstddef>
#include <optional>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/elastic_state.h"
#include "runtime/base/clock.h"

namespace hvd {

void FillSeats(ElasticChange& change);
// A worker leaves when its slot is no longer there and enough others could go on without it: ranks,
// and workers that wait to become one. So one that is still starting does not replace any yet.
void MarkLeaving(ElasticChange& change);
// The seats that there are for the workers of a job.
struct SeatCount {
  size_t taken = 0;     // by workers that stay
  size_t unlisted = 0;  // workers whose slot is no longer there
  size_t free = 0;
};
SeatCount CountSeats(const ElasticChange& change);
// A job that has enough slots waits so long for hosts that are on their way, so that it does not
// form a generation, or start its workers, without them and then again with them.
inline constexpr Duration kHostsPatience = std::chrono::seconds(3);
// When FillSeats no longer waits for hosts that are on their way.
std::optional<TimePoint> NextFill(const ElasticState& elastic);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SEATS_H_
