#include "launcher/job/elastic/elastic_generations.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/policy/rank_order.h"
#include "launcher/job/state/job_state.h"
#include "launcher/job/state/worker_kinds.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

bool IsSurvivor(const Candidate& candidate) { return candidate.last_rank.has_value(); }

}  // namespace

void AddWaiting(ElasticChange& change, uint32_t worker) {
  RankRecord& record = change.state.ranks[worker];
  change.LeaveGeneration(worker);
  change.state.LeaveWorld(worker);
  if (record.dismissed()) {  // the dismissal has not reached it yet
    return change.Do(DismissWorker{worker, "the job goes on, or has ended, without it"});
  }
  const bool is_spare = record.waiting() && record.init.is_spare;
  change.state.Move(worker, WorkerState::kInInit);
  change.state.Change(worker, [&change, is_spare](RankRecord& waiting) {
    waiting.init = {change.now, is_spare};
  });
  record.parting.reset();
  change.elastic.any_joined = true;
  change.elastic.incomplete_since.reset();
}

namespace {

bool StaysAndWaits(const WorkerKind& worker) { return !worker.leaving() && worker.waiting(); }
// It has the state of the job, if any rank has it.
bool WasMemberAndWaits(const WorkerKind& worker) { return worker.was_member && worker.waiting(); }

std::vector<Candidate> Waiting(const ElasticChange& change) {
  std::vector<Candidate> waiting;
  for (uint32_t worker : change.AliveWorkers(StaysAndWaits))
    waiting.push_back(change.CandidateOf(worker));
  // New workers beyond --max-np are spares.
  std::stable_partition(waiting.begin(), waiting.end(), IsSurvivor);
  if (waiting.size() > change.elastic.policy.max_np) waiting.resize(change.elastic.policy.max_np);
  return waiting;
}

}  // namespace

// All ranks that have the state of the job, and could send it to new ones, are waiting.
bool SurvivorsWait(const ElasticChange& change) {
  return !change.AnyAlive([](const WorkerKind& worker) {
    return worker.was_member && !worker.waiting() && !worker.dismissed();
  });
}

namespace {

// A lost process that still runs could write into memory that the survivors use.
bool LostAreGone(const ElasticChange& change) {
  return !change.state.kinds.Any([](const WorkerKind& worker) { return worker.lost; });
}

// The waiting worker that has been in the job longest, even if it is leaving.
std::optional<Candidate> SeniorThatWaits(const ElasticChange& change) {
  std::optional<Candidate> senior;
  for (uint32_t worker : change.AliveWorkers(WasMemberAndWaits)) {
    const Candidate candidate = change.CandidateOf(worker);
    if (!senior || IsSenior(candidate, *senior)) senior = candidate;
  }
  return senior;
}

// If no candidate is sure to have the state of the job (all are new, or their first generation
// broke before they got it), a worker that is leaving takes part once more to send it.
void KeepState(const ElasticChange& change, std::vector<Candidate>& candidates) {
  const std::optional<Candidate> keeper = SeniorThatWaits(change);
  const uint32_t most = change.elastic.policy.max_np;
  if (!keeper || most == 1) return;  // a job of one rank has no room for both
  // All ranks have passed a commit, so all have the state.
  const bool all_have_state = change.elastic.notice == CommitNotice::kActing;
  const auto has_state = [&](const Candidate& candidate) {
    if (!IsSurvivor(candidate)) return false;
    return all_have_state || candidate.since < change.state.generation ||
           candidate.since <= keeper->since;
  };
  if (std::ranges::any_of(candidates, has_state)) return;
  if (candidates.size() >= most) candidates.resize(most - 1);
  candidates.push_back(*keeper);
}

}  // namespace

void Begin(ElasticChange& change, std::vector<Candidate> candidates) {
  const bool first = change.state.generation == 0;
  const JobPolicy& policy = change.elastic.policy;
  // RestartAll has counted a restart.
  const bool restarted = std::exchange(change.elastic.restarted, false);
  if (!first && !restarted) {
    if (!change.MayBeginAgain()) return;
    ++change.elastic.resets;
  }
  ++change.state.generation;
  change.state.ending.reset();
  change.state.stopped.clear();
  change.elastic.generation =
      policy.ranks_change ? ArrangeRanks(std::move(candidates)) : GenerationOf(change.state.plan);
  change.elastic.broken = false;
  change.SetRunning(true);
  change.elastic.lost_cause.clear();
  for (const Member& member : change.elastic.generation.members) {
    RankRecord& record = change.state.ranks[member.worker];
    const Placement& place = change.state.plan.ranks[member.worker];
    // It has outlived a generation.
    if (record.was_member() && policy.outlives_losses)
      change.elastic.ledger.NoteGood(change.elastic.hosts[place.host].listing.host,
                                     place.local_rank, change.now);
    record.rank = member.place.rank;
    change.state.Move(member.worker, WorkerState::kMember);
    change.state.Change(member.worker, [&change](RankRecord& begins) {
      begins.in_generation = change.state.generation;
      if (!begins.was_member()) begins.first_generation = change.state.generation;
    });
  }
  change.Do(BeginWorld{change.state.generation, change.elastic.generation});
  if (!policy.ranks_change)
    return change.SetReason(
        Format("every rank called hvd.init(): generation {}", change.state.generation));
  change.elastic.notice = CommitNotice::kNone;
  change.elastic.update = 0;
  std::string begun = Format("generation {} begins with {}", change.state.generation,
                             Counted(change.elastic.generation.size(), "rank", "ranks"));
  first ? change.SetReason(std::move(begun)) : change.Notify(std::move(begun));
}

std::vector<Candidate> NextMembers(const ElasticChange& change) {
  // A quick test first: a job may have thousands of workers.
  const bool fewer_may_go_on = change.elastic.any_finished && change.elastic.policy.outlives_losses;
  if (change.state.counts.waiting < change.elastic.policy.min_np && !fewer_may_go_on) return {};
  if (change.elastic.running || change.elastic.restart || !LostAreGone(change) ||
      !SurvivorsWait(change))
    return {};
  // No rank has the state yet, or any more: all begin together.
  const size_t most = change.elastic.policy.max_np;
  if (!change.AnyAlive(WasMemberAndWaits) &&
      std::min(change.CountAlive(StaysAndWaits), most) < std::min(change.CountStaying(), most))
    return {};
  std::vector<Candidate> waiting = Waiting(change);
  KeepState(change, waiting);
  if (waiting.size() < change.elastic.policy.min_np && !fewer_may_go_on) return {};
  return waiting;
}

}  // namespace hvd
