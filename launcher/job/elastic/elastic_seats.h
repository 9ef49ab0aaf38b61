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
  // Since when there have been enough to start while hosts are still connecting.
  std::optional<TimePoint> enough_since;
};
SeatPlan PlanSeats(const ElasticChange& change);
void StartOn(ElasticChange& change, const std::vector<Seat>& seats);
// These workers with the ranks that they get if nothing changes before they join.
StartMembers MembersToStart(const ElasticChange& change, const std::set<uint32_t>& workers);
// A worker leaves when its slot no longer exists and enough others could continue without it:
// ranks, and workers that wait to become ranks. A worker that is still starting does not count as a
// replacement. These are the workers that are to leave from now on, or are needed again.
std::vector<uint32_t> WorkersThatTurn(const ElasticChange& change);
void Turn(ElasticChange& change, uint32_t worker);
// The seats that there are for the workers of a job.
struct SeatCount {
  size_t taken = 0;     // by workers that stay
  size_t unlisted = 0;  // workers whose slot is no longer there
  size_t free = 0;
};
SeatCount CountSeats(const ElasticChange& change);
// How long a job with enough slots waits for hosts that are still connecting, so that it does not
// form a generation, or start its workers, without them and then again with them.
inline constexpr Duration kHostsPatience = std::chrono::seconds(3);
// When PlanSeats stops waiting for hosts that are still connecting.
std::optional<TimePoint> NextFill(const ElasticState& elastic);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SEATS_H_
