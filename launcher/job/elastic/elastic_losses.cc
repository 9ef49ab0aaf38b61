#include "launcher/job/elastic/elastic_losses.h"

#include <csignal>
#include <utility>
#include <vector>

#include "configs/message_text.h"
#include "launcher/job/elastic/elastic_restart.h"
#include "launcher/job/policy/failure_kind.h"
#include "launcher/job/report/describe_end.h"
#include "launcher/job/state/rank_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// All deaths in one generation count as one failure, since most are consequences of the first. A
// worker that has not been in a generation counts by itself.
bool SpendOn(ElasticChange& change, uint32_t worker, FailureKind kind) {
  const RankRecord& record = change.state.ranks[worker];
  const bool consequence = record.is_consequence() || kind == FailureKind::kConsequence;
  if (!record.was_member() && !consequence) return change.elastic.budget.Spend(change.now);
  if (change.elastic.failed_generation == change.state.generation) return true;
  change.elastic.failed_generation = change.state.generation;
  return change.elastic.budget.Spend(change.now);
}

bool GoesOnWithout(ElasticChange& change, uint32_t worker, FailureKind kind) {
  if (!change.job.MayReplace()) return false;
  RankRecord& record = change.state.ranks[worker];
  if (change.elastic.any_finished || kind == FailureKind::kUserError) return false;
  if (record.leaving() || change.elastic.restart || change.elastic.stop_asked) {
    record.forgiven = true;
    return true;
  }
  if (kind != FailureKind::kHostLost) {
    const Placement& place = change.state.plan.ranks[worker];
    const std::string& host = change.elastic.hosts[place.host].listing.host;
    if (record.is_consequence() || kind == FailureKind::kConsequence) {
      change.elastic.ledger.NoteSlotFailure(host, place.local_rank, change.now);
    } else {
      change.elastic.ledger.NoteWorkerFailure(host, place.local_rank, change.now);
    }
  }
  if (!SpendOn(change, worker, kind)) {
    change.Notify("the job ends because it had more failures than --max-failures allows (" +
                  change.elastic.budget.Text(change.now) + ")");
    return false;
  }
  record.forgiven = true;
  return true;
}

// ", and its last line on stderr was 'ValueError: no'"; empty: it wrote none.
std::string LastLineOf(const RankRecord& record) {
  const std::string& words = record.end->last_stderr;
  const size_t end = words.find_last_not_of(" \n");
  if (end == std::string::npos) return "";
  const std::string text = words.substr(0, end + 1);
  const size_t newline = text.rfind('\n');
  const std::string line = newline == std::string::npos ? text : text.substr(newline + 1);
  return ", and its last line on stderr was " + Quoted(line, kMaxShownPath);
}

// The workers of a host that was lost: one failure.
bool GoesOnWithoutAll(ElasticChange& change, const std::vector<uint32_t>& workers) {
  bool counted = false;
  for (uint32_t worker : workers) {
    RankRecord& record = change.state.ranks[worker];
    if (!counted && !GoesOnWithout(change, worker, FailureKind::kHostLost)) return false;
    counted = counted || !record.leaving();
    record.forgiven = true;
  }
  return true;
}

// If the script has never committed, an exception that is raised again, by another rank or after a
// restart of all, is a user error.
FailureKind KindOf(ElasticChange& change, uint32_t worker) {
  const RankRecord& record = change.state.ranks[worker];
  change.elastic.any_committed = change.elastic.any_committed || record.end->commits > 0;
  const Placement& place = change.state.plan.ranks[worker];
  return change.elastic.failure_kinds.KindOf(
      {.end = *record.end,
       .out_of_memory = record.end->out_of_memory,
       .is_consequence = record.is_consequence(),
       .had_committed = change.elastic.any_committed || change.elastic.RestartsInJob(),
       .place = Format("{}:{}:{}", change.state.plan.hosts[place.host], place.local_rank,
                       change.elastic.restarts),
       .last_stderr = record.end->last_stderr});
}

// The workers on the host that are alive.
std::vector<uint32_t> WorkersOn(const ElasticChange& change, uint32_t host) {
  std::vector<uint32_t> workers = change.AliveWorkers();
  std::erase_if(workers, [&change, host](uint32_t worker) {
    return change.state.plan.ranks[worker].host != host;
  });
  return workers;
}

void NotifyOfLostHost(ElasticChange& change, uint32_t host, size_t ranks) {
  const ElasticHost& known = change.elastic.hosts[host];
  std::string sentence = "host " + change.state.plan.hosts[host];
  sentence += known.ready || ranks > 0 ? " was lost: " : " cannot be used: ";
  sentence += known.trouble;
  if (ranks > 0)
    sentence += "; " + Counted(ranks, "rank is gone with it", "ranks are gone with it");
  change.Notify(std::move(sentence));
}

void LoseWithHost(ElasticChange& change, uint32_t worker) {
  RankRecord& record = change.state.ranks[worker];
  if (!record.ended() && record.in_generation != 0) {
    const std::string& host = change.state.plan.hosts[change.state.plan.ranks[worker].host];
    change.Do(BreakGeneration{record.in_generation, "host " + host + " was lost"});
    change.LoseMember(worker);
  }
  change.state.Change(worker, [](RankRecord& gone) { gone.in_generation = 0; });
  // If it was lost before its host, no exit code will follow.
  if (record.loss && !record.ended()) record.forgiven = true;
  change.state.Move(worker, WorkerState::kEnded);
}

}  // namespace

void LoseUnstarted(ElasticChange& change, uint32_t worker, const std::string& reason) {
  if (change.elastic.any_finished || GoesOnWithout(change, worker, FailureKind::kCrash))
    return change.Notify(change.WorkerText(worker) + " could not be started: " + reason);
  JobFailure failure;
  failure.kind = JobFailure::Kind::kCommand;
  failure.rank = worker;
  failure.reason = change.WorkerText(worker) + " could not be started: " + reason;
  change.FailJob(std::move(failure));
}

void HandleEnd(ElasticChange& change, uint32_t worker) {
  RankRecord& record = change.state.ranks[worker];
  change.LoseMember(worker);
  const bool stopped = change.elastic.stopping() && record.end->exit_code() == kStoppedExitCode;
  record.forgiven = record.forgiven || stopped;
  if (!change.job.AtWork()) return;
  // In a job of fixed size, a rank without a goodbye may have exited after its last collective.
  if (record.end->ok() && (!record.loss || !change.job.MayReplace())) {
    change.elastic.any_finished = change.elastic.any_finished || !record.leaving();
    return;
  }
  const FailureKind kind = KindOf(change, worker);
  const bool restarting = change.elastic.restart && kind != FailureKind::kUserError;
  if (stopped || record.leaving() || restarting) {
    record.forgiven = true;
    return;
  }
  if (!GoesOnWithout(change, worker, kind)) {
    record.forgiven = false;
    JobFailure failure;
    failure.rank = worker;
    return change.FailJob(std::move(failure),
                          RankText(change.state, worker) + " " + EndText(*record.end));
  }
  const std::string end = change.WorkerText(worker) + " failed: " + DescribeCause(record);
  if (change.elastic.lost_cause.empty()) change.elastic.lost_cause = end + LastLineOf(record);
  if (change.elastic.RestartsInJob()) return RestartAll(change, end);
  change.Notify(end + "; " + Counted(change.CountStaying(), "rank goes on", "ranks go on") +
                " without it (" + change.elastic.budget.Text(change.now) + ")");
}

void LoseHost(ElasticChange& change, uint32_t host, const std::string& reason) {
  ElasticHost& known = change.elastic.hosts[host];
  const bool was_wanted = !std::exchange(known.gone, true);
  known.trouble = reason;
  change.elastic.CountHosts();
  change.state.stages.Fail(host, reason, change.now);  // it is no longer connecting
  std::vector<uint32_t> taken;
  if (!change.state.dismissed[host] && was_wanted) {
    change.elastic.ledger.NoteHostFailure(known.listing.host, change.now);
    taken = WorkersOn(change, host);
    NotifyOfLostHost(change, host, taken.size());
    JobFailure failure;
    failure.kind = JobFailure::Kind::kHost;
    failure.host = host;
    failure.reason = reason;
    if (!GoesOnWithoutAll(change, taken)) change.FailJob(std::move(failure));
  }
  for (uint32_t worker = 0; worker < change.state.ranks.size(); ++worker) {
    if (change.state.plan.ranks[worker].host == host) LoseWithHost(change, worker);
  }
  if (!taken.empty()) NoteIncomplete(change);
}

void EndGeneration(ElasticChange& change, const JobFailure& ending) {
  if (!change.elastic.running) return;
  change.elastic.broken = true;
  change.SetRunning(false);
  if (!change.elastic.budget.Spend(change.now)) return change.FailJob(ending);
  change.elastic.failed_generation = change.state.generation;
  change.Notify(ending.reason + "; the ranks form another generation (" +
                change.elastic.budget.Text(change.now) + ")");
}

// A rank that a signal has stopped does not learn that its generation has ended, and it must not
// touch the memory of the others when it continues.
void EndStopped(ElasticChange& change, uint32_t worker) {
  if (change.elastic.running || !change.IsAlive(worker)) return;
  change.Notify(change.WorkerText(worker) +
                " is stopped by a signal and was ended, so that the others can go on");
  change.Do(SignalWorker{worker, SIGKILL});
}

}  // namespace hvd
