#include "launcher/job/elastic/elastic_seats.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "launcher/job/elastic/elastic_hosts.h"
#include "launcher/job/policy/rank_order.h"
#include "launcher/output/text/phrases.h"
#include "launcher/wire/messages.h"

namespace hvd {
namespace {

bool HasSlot(const ElasticChange& change, uint32_t worker) {
  const Placement& place = change.state.plan.ranks[worker];
  const ElasticHost& host = change.elastic.hosts[place.host];
  return host.listed && place.local_rank < host.slots;
}

size_t CountWithSlot(const ElasticChange& change) {
  return static_cast<size_t>(std::ranges::count_if(
      change.AliveWorkers(), [&change](uint32_t worker) { return HasSlot(change, worker); }));
}

std::vector<Seat> FreeSeats(const ElasticChange& change) {
  std::set<std::pair<uint32_t, uint32_t>> taken;
  for (uint32_t worker = 0; worker < change.state.ranks.size(); ++worker) {
    const Placement& place = change.state.plan.ranks[worker];
    if (!change.state.ranks[worker].ended()) taken.emplace(place.host, place.local_rank);
  }
  std::vector<Seat> free;
  for (uint32_t host = 0; host < change.elastic.hosts.size(); ++host) {
    const ElasticHost& known = change.elastic.hosts[host];
    if (!known.usable()) continue;
    for (uint32_t seat = 0; seat < known.slots; ++seat) {
      if (!taken.contains({host, seat}) &&
          change.elastic.ledger.MayUse(known.listing.host, seat, change.now))
        free.push_back({host, seat});
    }
  }
  return free;
}

// Workers may be added at the start, as replacements, and to ranks that admit new ones at a
// commit.
bool MayAdd(const ElasticChange& change) {
  if (change.elastic.any_finished || change.elastic.stop_asked || change.elastic.restart)
    return false;
  const bool none_started = change.StayingWorkers().empty();
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
  for (const Seat& seat : seats) {
    const auto worker = static_cast<uint32_t>(change.state.ranks.size());
    change.state.ranks.emplace_back();
    change.state.plan.ranks.push_back({worker, seat.host, seat.seat, 0, 0, 0});
    added.insert(worker);
  }
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
  const size_t staying = change.StayingWorkers().size();
  const size_t most = MostWorkers(change);
  const size_t with_slot = CountWithSlot(change);
  if (with_slot >= most) return {};
  std::vector<Seat> seats = FreeSeats(change);
  if (seats.empty()) return {};
  // The first start, or a start after all workers have ended, needs enough seats, and waits briefly
  // for hosts that are connecting.
  if (staying == 0) {
    if (seats.size() < change.Needed()) return {};
    const TimePoint since = change.elastic.enough_since.value_or(change.now);
    const bool full = seats.size() >= change.elastic.policy.max_np;
    if (!full && HostsConnecting(change) && change.now < since + kHostsPatience) return {{}, since};
  }
  seats.resize(std::min(seats.size(), most - with_slot));
  return {std::move(seats), {}};
}

// A worker leaves when its slot is gone and enough others can continue without it: ranks, and
// workers that wait to become ranks. One that is still starting does not count yet.
std::set<uint32_t> LeavingWorkers(const ElasticChange& change) {
  std::set<uint32_t> without_slot;
  size_t able = 0;
  for (uint32_t worker : change.AliveWorkers()) {
    const RankRecord& record = change.state.ranks[worker];
    if (!HasSlot(change, worker)) {
      without_slot.insert(worker);
    } else {
      able += record.was_member() || record.waiting() || change.state.generation == 0;
    }
  }
  return able < change.elastic.policy.min_np ? std::set<uint32_t>() : without_slot;
}

SeatCount CountSeats(const ElasticChange& change) {
  SeatCount count{.taken = CountWithSlot(change), .free = FreeSeats(change).size()};
  count.unlisted = change.AliveWorkers().size() - count.taken;
  return count;
}

std::optional<TimePoint> NextFill(const ElasticState& elastic) {
  if (!elastic.enough_since) return std::nullopt;
  return *elastic.enough_since + kHostsPatience;
}

}  // namespace hvd
