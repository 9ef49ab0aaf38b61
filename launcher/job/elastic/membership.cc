#include "launcher/job/elastic/membership.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/elastic/elastic_dismissal.h"
#include "launcher/job/elastic/elastic_generations.h"
#include "launcher/job/elastic/elastic_hosts.h"
#include "launcher/job/elastic/elastic_notice.h"
#include "launcher/job/elastic/elastic_restart.h"
#include "launcher/job/elastic/elastic_seats.h"
#include "launcher/job/elastic/elastic_shortage.h"
#include "launcher/job/elastic/elastic_spares.h"
#include "launcher/output/text/counted.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// "1 of 3 workers in hvd.init(), 1 starting; 2 free slots; generation 4; 2 to 4 ranks".
std::string MembersText(const ElasticChange& change) {
  const ElasticLimits& limits = change.elastic.limits;
  const std::vector<uint32_t> alive = change.AliveWorkers();
  const auto starting = std::ranges::count_if(alive, [&change](uint32_t worker) {
    return change.state.ranks[worker].state == WorkerState::kStarting;
  });
  return Format("{} of {} in hvd.init(), {} starting; {}; generation {}{}; {} to {} ranks",
                change.state.counts.waiting, Counted(alive.size(), "worker", "workers"), starting,
                Counted(CountSeats(change).free, "free slot", "free slots"),
                change.state.generation, change.elastic.running ? " runs" : "", limits.min_np,
                limits.max_np);
}

}  // namespace

std::optional<JobFailure> ReviewMembers(ElasticChange& change) {
  JobState& state = change.state;
  ElasticState& elastic = change.elastic;
  // A job of fixed size keeps its hosts and workers, and a world of it may form while it is asked
  // to end.
  if (state.fixed()) {
    if (std::vector<Candidate> members = NextMembers(change); !members.empty())
      Begin(change, std::move(members));
  }
  if (change.failure || !change.job.MayReplace())
    return std::exchange(change.failure, std::nullopt);

  // Hosts that are listed are opened, and workers whose slot is gone are to leave.
  if (elastic.restart) GoOnWithRestart(change);
  for (const HostSlots& listing : HostsToOpen(change)) Open(change, listing);
  const std::set<uint32_t> leaving = LeavingWorkers(change);
  for (uint32_t worker : change.AliveWorkers()) {
    Stay& stay = state.ranks[worker].stay;
    if (stay != Stay::kDismissed) stay = leaving.contains(worker) ? Stay::kLeaving : Stay::kNeeded;
  }

  // Where the script cannot go on with other ranks, all workers are started again.
  const RestartPlan restart = PlanRestart(change);
  elastic.resize_since = restart.resize_since;
  elastic.resize_at = restart.resize_at;
  if (!restart.why.empty()) RestartAll(change, restart.why);
  if (change.failure) return std::exchange(change.failure, std::nullopt);

  // Free seats get workers, a generation begins, and then there are seats for its spares.
  const auto fill = [&change, &elastic] {
    const SeatPlan plan = PlanSeats(change);
    elastic.enough_since = plan.enough_since;
    if (!plan.seats.empty()) StartOn(change, plan.seats);
  };
  fill();
  if (std::vector<Candidate> members = NextMembers(change); !members.empty())
    Begin(change, std::move(members));
  if (change.failure) return std::exchange(change.failure, std::nullopt);
  fill();

  // Workers that are not needed go; ranks of a running generation act at one commit.
  for (uint32_t worker : WorkersToDismiss(change)) Dismiss(change, worker);
  const NoticePlan notice = PlanNotice(change);
  elastic.growth_at = notice.growth_at;
  if (notice.update != 0) HoldCommitsOfAll(change, notice.update);
  for (uint32_t worker : NewSpares(change)) NoteSpare(change, worker);

  // The end: of the job, of workers that outlive their time, of hosts, and of patience.
  FinishIfDone(change);
  KillOverdue(change);
  for (uint32_t host : UnusedHosts(change)) Drop(change, host);
  WatchShortage(change);
  elastic.ledger_changes_at = elastic.ledger.NextChange(change.now);
  return std::exchange(change.failure, std::nullopt);
}

void ExplainMembers(ElasticChange& change) {
  if (!change.job.MayReplace()) return;
  std::string text = MembersText(change);
  if (text == change.elastic.last_text) return;
  change.elastic.last_text = text;
  if (!change.job.decision.reason.empty()) return;
  change.job.decision.detail = true;
  change.Because(std::move(text));
}

std::optional<TimePoint> NextMembershipTick(const JobState& state) {
  if (state.phase > JobPhase::kRunning || state.failure) return std::nullopt;
  const ElasticState& elastic = state.elastic;
  std::optional<TimePoint> next;
  for (const std::optional<TimePoint>& time :
       {elastic.ledger_changes_at, NextFill(elastic), NextRestart(elastic),
        NextShortageReport(elastic), elastic.growth_at, elastic.next_overdue}) {
    if (time && (!next || *time < *next)) next = time;
  }
  return next;
}

}  // namespace hvd
