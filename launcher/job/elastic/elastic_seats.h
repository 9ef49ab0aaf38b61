// The seats of an elastic job: on which slots workers are started, and which workers leave because
// their slot is no longer there. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SEATS_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SEATS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/elastic_state.h"
#include "runtime/base/clock.h"

namespace hvd {

// A slot on which a worker could be started.
struct Seat {
  uint32_t host = 0, seat = 0;
};
struct SeatPlan {
  std::vector<Seat> seats;  // on which workers are to be started now
  // Since when there have been enough to start, while hosts are still on their way.
  std::optional<TimePoint> enough_since;
};
SeatPlan PlanSeats(const ElasticChange& change);
void StartOn(ElasticChange& change, const std::vector<Seat>& seats);
// With the ranks that these workers get if nothing else changes until they join.
StartMembers MembersToStart(const ElasticChange& change, const std::set<uint32_t>& workers);
// A worker leaves when its slot is no longer there and enough others could go on without it: ranks,
// and workers that wait to become one. So one that is still starting does not replace any yet.
std::set<uint32_t> LeavingWorkers(const ElasticChange& change);
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
// When PlanSeats no longer waits for hosts that are on their way.
std::optional<TimePoint> NextFill(const ElasticState& elastic);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SEATS_H_
