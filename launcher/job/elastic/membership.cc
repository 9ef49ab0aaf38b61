#include "launcher/job/elastic/membership.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/elastic/elastic_generations.h"
#include "launcher/job/elastic/elastic_hosts.h"
#include "launcher/job/elastic/elastic_notice.h"
#include "launcher/job/elastic/elastic_restart.h"
#include "launcher/job/elastic/elastic_seats.h"
#include "launcher/job/elastic/elastic_spares.h"
#include "launcher/job/host_records/host_stages.h"
#include "launcher/job/state/elastic_state.h"
#include "launcher/job/state/job_state.h"
#include "launcher/job/state/worker_kinds.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/clock.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kFirstReport = std::chrono::seconds(10);
constexpr Duration kLaterReports = std::chrono::seconds(30);

// A host that is retried is listed again under a new number: only its last reason is shown.
std::string HostTroubles(const std::vector<ElasticHost>& hosts) {
  std::string text;
  for (auto host = hosts.begin(); host != hosts.end(); ++host) {
    const bool again = std::any_of(host + 1, hosts.end(), [&](const ElasticHost& later) {
      return later.listing.host == host->listing.host && (later.ready || !later.trouble.empty());
    });
    if (!host->trouble.empty() && host->listed && !again)
      text += "; host " + host->listing.host + ": " + host->trouble;
  }
  return text;
}

std::string ShortageText(const ElasticChange& change, size_t have, uint32_t need) {
  std::string text = Counted(have, "rank is there", "ranks are there") + ", " +
                     Counted(need, "is needed", "are needed");
  std::vector<std::string> late;
  for (uint32_t worker : change.AliveWorkers()) {
    const RankRecord& record = change.state.ranks[worker];
    if (record.running() && !record.waiting()) late.push_back(change.WorkerText(worker));
  }
  if (!late.empty()) {
    text += "; " + HostNames(late) + (late.size() == 1 ? " has" : " have") +
            " not called hvd.init()" + (change.state.generation > 0 ? " again" : "");
  }
  text += HostTroubles(change.elastic.hosts);
  if (change.elastic.listed_once && change.elastic.listing.empty()) text += "; no hosts are listed";
  if (!change.elastic.source_trouble.empty()) text += "; " + change.elastic.source_trouble;
  if (!change.elastic.lost_cause.empty()) text += "; before that, " + change.elastic.lost_cause;
  return text;
}

// The present wait and its limit. Missing slots and slow ranks have separate limits: a short one
// for slots must not end a job whose ranks take a while to import.
struct PendingWait {
  TimePoint until;
  Duration limit;
  const char* setting;
  const char* what;
};

std::optional<PendingWait> WaitOf(const ElasticState& elastic) {
  const JobPolicy& policy = elastic.policy;
  if (elastic.short_since)
    return PendingWait{*elastic.short_since + policy.elastic_timeout, policy.elastic_timeout,
                       "--elastic-timeout", "too few ranks could take part within the "};
  if (!elastic.late_since) return std::nullopt;
  // A worker that was started meanwhile gets the full time.
  return PendingWait{std::max(*elastic.late_since, elastic.started_at) + policy.init_timeout,
                     policy.init_timeout, "--init-timeout",
                     "ranks have not called hvd.init() within the "};
}

void ReportShortage(ElasticChange& change, const PendingWait& wait, const std::string& text) {
  change.Notify("waiting for ranks: " + text + "; the job ends in " +
                SecondsText(std::max(wait.until - change.now, Duration{})) + " (" + wait.setting +
                ")");
}

void BeginWait(std::optional<TimePoint>& wait, std::optional<TimePoint>& other,
               ElasticChange& change) {
  if (!wait && !other) change.elastic.next_report = change.now + kFirstReport;
  if (!wait) wait = change.now;
  other.reset();
}

// Too few ranks for a generation of an elastic job: reports the missing ones while the job waits,
// and fails the job at --elastic-timeout.
void WatchShortage(ElasticChange& change) {
  ElasticState& elastic = change.elastic;
  if (elastic.running || elastic.any_finished || elastic.restart) {
    elastic.short_since.reset();
    elastic.late_since.reset();
    return;
  }
  const size_t have = change.CountStaying();
  const uint32_t need = change.Needed();
  // If all ranks said goodbye, none waits for another: they are saving something, or are done.
  const bool keep_waiting =
      change.elastic.broken && change.elastic.any_joined && !SurvivorsWait(change);
  const bool late = change.state.counts.waiting > 0 || keep_waiting;
  if (have < need) {
    BeginWait(elastic.short_since, elastic.late_since, change);
  } else if (late) {
    BeginWait(elastic.late_since, elastic.short_since, change);
  } else {
    elastic.short_since.reset();
    elastic.late_since.reset();
    return;
  }
  const PendingWait wait = *WaitOf(elastic);
  const bool over = change.now >= wait.until;
  if (!over && change.now < elastic.next_report) return;
  const std::string text = ShortageText(change, have, need);
  elastic.next_report = change.now + kLaterReports;
  ReportShortage(change, wait, text);
  if (over)
    change.FailJob(wait.what + SecondsText(wait.limit) + " of " + wait.setting + ": " + text);
}

std::optional<TimePoint> NextShortageReport(const ElasticState& elastic) {
  const std::optional<PendingWait> wait = WaitOf(elastic);
  if (!wait) return std::nullopt;
  return std::min(elastic.next_report, wait->until);
}

void EndBy(ElasticChange& change, uint32_t worker, TimePoint time) {
  change.state.Change(worker, [time](RankRecord& record) { record.end_by = time; });
}

// Ends a worker that was never a rank, and so has nothing to save.
void EndUnused(ElasticChange& change, uint32_t worker) {
  EndBy(change, worker, change.now + change.state.options.terminate_grace);
  change.Do(SignalWorker{worker, SIGTERM});
}

// Workers whose slot is gone and that can leave now. A rank leaves at a commit, once the others
// have its state.
std::vector<uint32_t> WorkersToDismiss(const ElasticChange& change) {
  if (change.elastic.restart) return {};  // all of them end
  return change.AliveWorkers([running = change.elastic.running](const WorkerKind& worker) {
    // Those that were ranks wait in hvd.init() after that commit.
    const bool at_commit = worker.waiting() && running;
    return worker.stay == Stay::kLeaving && (!worker.was_member || at_commit);
  });
}

void NoteDismissed(ElasticChange& change, uint32_t worker) {
  change.state.Change(worker, [](RankRecord& record) { record.stay = Stay::kDismissed; });
  change.state.StopWaiting(worker);
}

void Dismiss(ElasticChange& change, uint32_t worker) {
  const bool waits = change.state.ranks[worker].waiting();
  NoteDismissed(change, worker);
  if (waits) {
    return change.Do(DismissWorker{worker, "its slot is no longer part of the job"});
  }
  NoteIncomplete(change);
  EndUnused(change, worker);
}

// After the first exit with code 0 no worker is added or replaced. When no member is left, workers
// that never joined are ended, too.
void FinishIfDone(ElasticChange& change) {
  // A script without generations has no members, and each of its processes exits on its own.
  const bool finished = change.elastic.any_finished && change.state.generation > 0;
  if (!finished && !change.elastic.stop_asked) return;
  if (change.AnyAlive([](const WorkerKind& worker) { return worker.in_generation; })) return;
  const auto is_unused = [](const WorkerKind& worker) {
    return !worker.was_member && !worker.dismissed();
  };
  for (uint32_t worker : change.AliveWorkers(is_unused)) {
    NoteDismissed(change, worker);
    EndUnused(change, worker);
  }
  // Only ranks that were dismissed before are left.
  if (change.CountStaying() > 0) return;
  for (uint32_t worker : change.AliveWorkers([](const WorkerKind& w) { return !w.must_end; }))
    EndBy(change, worker, change.now + change.state.options.stop_grace);
}

// Sends SIGKILL to workers that have exceeded their grace.
void KillOverdue(ElasticChange& change) {
  change.elastic.next_overdue.reset();
  const auto is_to_end = [](const WorkerKind& worker) { return worker.must_end && !worker.killed; };
  for (uint32_t worker : change.AliveWorkers(is_to_end)) {
    const TimePoint end_by = *change.state.ranks[worker].end_by;
    if (change.now >= end_by) {
      EndBy(change, worker, TimePoint::max());
      change.Do(SignalWorker{worker, SIGKILL});
    } else {
      change.elastic.next_overdue = std::min(change.elastic.next_overdue.value_or(end_by), end_by);
    }
  }
}

// "1 of 3 workers in hvd.init(), 1 starting; 2 free slots; generation 4; 2 to 4 ranks".
std::string MembersText(const ElasticChange& change) {
  const JobPolicy& policy = change.elastic.policy;
  const size_t starting = change.CountAlive(
      [](const WorkerKind& worker) { return worker.state == WorkerState::kStarting; });
  return Format("{} of {} in hvd.init(), {} starting; {}; generation {}{}; {} to {} ranks",
                change.state.counts.waiting, Counted(change.CountAlive(), "worker", "workers"),
                starting, Counted(CountSeats(change).free, "free slot", "free slots"),
                change.state.generation, change.elastic.running ? " runs" : "", policy.min_np,
                policy.max_np);
}

}  // namespace

std::optional<JobFailure> ReviewMembers(ElasticChange& change) {
  JobState& state = change.state;
  ElasticState& elastic = change.elastic;
  if (state.policy().serves_while_ending) {
    if (std::vector<Candidate> members = NextMembers(change); !members.empty())
      Begin(change, std::move(members));
  }
  // Nothing below concerns a job of fixed size (docs/decisions/fixed-jobs.md).
  if (change.failure || !change.job.MayReplace())
    return std::exchange(change.failure, std::nullopt);

  // Open hosts that are listed; mark workers whose slot is gone as leaving.
  if (elastic.restart) ContinueRestart(change);
  Open(change, HostsToOpen(change));
  for (uint32_t worker : WorkersThatTurn(change)) Turn(change, worker);

  // If the script cannot continue with other ranks, restart all workers.
  const RestartPlan restart = PlanRestart(change);
  elastic.resize_since = restart.resize_since;
  elastic.resize_at = restart.resize_at;
  if (!restart.why.empty()) RestartAll(change, restart.why);
  if (change.failure) return std::exchange(change.failure, std::nullopt);

  // Start workers on free seats, begin a generation, and then start its spares.
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

  // Dismiss workers that are not needed; have the ranks of a running generation act at one commit.
  for (uint32_t worker : WorkersToDismiss(change)) Dismiss(change, worker);
  const NoticePlan notice = PlanNotice(change);
  elastic.growth_at = notice.growth_at;
  if (notice.update != 0) HoldCommitsOfAll(change, notice.update);
  for (uint32_t worker : NewSpares(change)) NoteSpare(change, worker);

  // End the job, overdue workers, unused hosts, and waits that have reached their limit.
  FinishIfDone(change);
  KillOverdue(change);
  Drop(change, UnusedHosts(change));
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
  change.SetReason(std::move(text));
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
