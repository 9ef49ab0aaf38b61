#include "launcher/job/elastic/membership.h"

#include <utility>

#include "launcher/job/elastic/elastic_dismissal.h"
#include "launcher/job/elastic/elastic_generations.h"
#include "launcher/job/elastic/elastic_hosts.h"
#include "launcher/job/elastic/elastic_notice.h"
#include "launcher/job/elastic/elastic_restart.h"
#include "launcher/job/elastic/elastic_seats.h"
#include "launcher/job/elastic/elastic_shortage.h"
#include "launcher/job/elastic/elastic_spares.h"

namespace hvd {

namespace {

// In this order; a failure ends the review. Seats are filled again after a generation has begun:
// with its spares.
constexpr void (*kReview[])(ElasticChange&) = {
    GoOnWithRestart, OpenListedHosts, MarkLeaving, RestartIfIncomplete, RestartIfResized,
    FillSeats,       FormGeneration,  FillSeats,   DismissLeaving,      NoticeChange,
    NoticeSpares,    FinishIfDone,    KillOverdue, DropUnusedHosts,     WatchShortage};

}  // namespace

std::optional<JobFailure> ReviewMembers(ElasticChange& change) {
  // Its hosts and workers stay, and a world may form while it is asked to end.
  if (change.state.fixed()) FormGeneration(change);
  const bool at_work = change.job.MayReplace();
  for (const auto review : kReview) {
    if (!at_work || change.failure) return std::exchange(change.failure, std::nullopt);
    review(change);
  }
  change.elastic.ledger_changes_at = change.elastic.ledger.NextChange(change.now);
  return std::exchange(change.failure, std::nullopt);
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
