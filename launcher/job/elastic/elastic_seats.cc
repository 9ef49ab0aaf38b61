#include "launcher/job/elastic/elastic_seats.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "launcher/job/elastic/elastic_hosts.h"
#include "launcher/job/policy/rank_order.h"
#include "launcher/job/state/worker_kinds.h"
#include "launcher/output/text/phrases.h"
#include "launcher/wire/messages.h"

namespace hvd {
namespace {

size_t CountWithSlot(const ElasticChange& change) {
  return change.CountAlive([](const WorkerKind& worker) { return worker.has_slot; });
}

std::vector<Seat> FreeSeats(const ElasticChange& change) {
  std::vector<Seat> free;
  if (change.elastic.host_counts.free_seats == 0) return free;
  for (uint32_t host = 0; host < change.elastic.hosts.size(); ++host) {
    const ElasticHost& known = change.elastic.hosts[host];
    if (known.CountFree() == 0) continue;
    for (uint32_t seat = 0; seat < known.slots; ++seat) {
      if (known.HasFree(seat) && change.elastic.ledger.MayUse(known.listing.host, seat, change.now))
        free.push_back({host, seat});
    }
  }
  return free;
}

size_t CountFree(const ElasticChange& change) {
  const bool any_rests = change.elastic.ledger.NextChange(change.now).has_value();
  return any_rests ? FreeSeats(change).size() : change.elastic.host_counts.free_seats;
}

// Workers may be added at the start, as replacements, and to ranks that admit new ones at a
// commit.
bool MayAdd(const ElasticChange& change) {
  if (change.elastic.any_finished || change.elastic.stop_asked || change.elastic.restart)
    return false;
  const bool none_started = change.CountStaying() == 0;
  return none_started || !change.elastic.RestartsInJob();
}

// Spares are started once the ranks train. A spare is a worker that waits in hvd.init() until a
// place is free.
size_t MostWorkers(const ElasticChange& change) {
  return change.elastic.policy.max_np + (change.elastic.running ? change.elastic.policy.spares : 0);
}

}  // namespace

StartMembers MembersToStart(const ElasticChange& change, const std::set<uint32_t>& workers) {
  std::set<uint32_t> all = workers;
  for (uint32_t worker : change.StayingWorkers()) all.insert(worker);
  std::vector<Candidate> candidates;
  for (uint32_t worker : all) candidates.push_back(change.CandidateOf(worker));
  const Generation expected = ArrangeRanks(std::move(candidates));
  StartMembers start{{}, expected.size(), expected.homogeneous, change.elastic.restarts};
  for (const Member& member : expected.members) {
    if (workers.contains(member.worker)) start.members.push_back(member);
  }
  return start;
}

void StartOn(ElasticChange& change, const std::vector<Seat>& seats) {
  std::set<uint32_t> added;
  for (const Seat& seat : seats) added.insert(change.state.AddWorker(seat.host, seat.seat));
  StartMembers start = MembersToStart(change, added);
  for (const Member& member : start.members)
    change.state.ranks[member.worker].rank = member.place.rank;
  change.SetReason("starting " + Counted(start.members.size(), "worker", "workers"));
  if (change.state.phase == JobPhase::kOpening) {
    change.state.phase = JobPhase::kStarting;
    change.state.deadline = change.now + change.state.options.start_timeout;
  }
  change.elastic.started_at = change.now;
  change.elastic.time.NoteStart(change.now);
  change.Do(std::move(start));
}

SeatPlan PlanSeats(const ElasticChange& change) {
  if (!MayAdd(change)) return {};
  const size_t most = MostWorkers(change);
  const size_t with_slot = CountWithSlot(change);
  if (with_slot >= most) return {};
  const size_t free = CountFree(change);
  if (free == 0) return {};
  // The first start, or a start after all workers have ended, needs enough seats, and waits briefly
  // for hosts that are connecting.
  if (change.CountStaying() == 0) {
    if (free < change.Needed()) return {};
    const TimePoint since = change.elastic.enough_since.value_or(change.now);
    const bool full = free >= change.elastic.policy.max_np;
    if (!full && HostsConnecting(change) && change.now < since + kHostsPatience) return {{}, since};
  }
  std::vector<Seat> seats = FreeSeats(change);
  seats.resize(std::min(seats.size(), most - with_slot));
  return {std::move(seats), {}};
}

// A worker leaves when its slot is gone and enough others can continue without it: ranks, and
// workers that wait to become ranks. One that is still starting does not count yet.
std::vector<uint32_t> WorkersThatTurn(const ElasticChange& change) {
  const bool first = change.state.generation == 0;
  const size_t able = change.CountAlive([first](const WorkerKind& worker) {
    return worker.has_slot && (worker.was_member || worker.waiting() || first);
  });
  const bool may_leave = able >= change.elastic.policy.min_np;
  return change.AliveWorkers([may_leave](const WorkerKind& worker) {
    const bool leaves = may_leave && !worker.has_slot;
    return !worker.dismissed() && worker.leaving() != leaves;
  });
}

void Turn(ElasticChange& change, uint32_t worker) {
  change.state.Change(worker, [](RankRecord& record) {
    record.stay = record.leaving() ? Stay::kNeeded : Stay::kLeaving;
  });
}

SeatCount CountSeats(const ElasticChange& change) {
  SeatCount count{.taken = CountWithSlot(change), .free = CountFree(change)};
  count.unlisted = change.CountAlive() - count.taken;
  return count;
}

std::optional<TimePoint> NextFill(const ElasticState& elastic) {
  if (!elastic.enough_since) return std::nullopt;
  return *elastic.enough_since + kHostsPatience;
}

}  // namespace hvd
