#include "launcher/job/elastic/elastic_change.h"

#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {

bool ElasticChange::IsAlive(uint32_t worker) const { return state.ranks[worker].alive(); }

namespace {

bool IsAny(const WorkerKind&) { return true; }
bool Stays(const WorkerKind& kind) { return !kind.leaving(); }

}  // namespace

size_t ElasticChange::CountAlive() const { return CountAlive(IsAny); }
std::vector<uint32_t> ElasticChange::AliveWorkers() const { return AliveWorkers(IsAny); }
size_t ElasticChange::CountStaying() const { return CountAlive(Stays); }
std::vector<uint32_t> ElasticChange::StayingWorkers() const { return AliveWorkers(Stays); }

std::string ElasticChange::WorkerText(uint32_t worker) const {
  const RankRecord& record = state.ranks[worker];
  return Format("rank {} on host {} (pid {})", record.rank,
                state.plan.hosts[state.plan.ranks[worker].host], record.pid);
}

Candidate ElasticChange::CandidateOf(uint32_t worker) const {
  const RankRecord& record = state.ranks[worker];
  const Placement& place = state.plan.ranks[worker];
  return {worker, place.host, place.local_rank,
          record.was_member() ? std::optional(record.rank) : std::nullopt, record.first_generation};
}

uint32_t ElasticChange::Needed() const {
  return state.generation == 0 && elastic.restarts == 0 ? elastic.policy.np : elastic.policy.min_np;
}

void ElasticChange::FailJob(JobFailure reason, std::string why) {
  if (failure) return;
  failure_reason = why.empty() ? reason.reason : std::move(why);
  failure = std::move(reason);
}

void ElasticChange::FailJob(std::string reason) {
  JobFailure internal;
  internal.kind = JobFailure::Kind::kInternal;
  internal.reason = std::move(reason);
  FailJob(std::move(internal));
}

bool ElasticChange::MayBeginAgain() {
  const std::optional<uint32_t>& limit = elastic.policy.reset_limit;
  if (!limit || elastic.resets + elastic.restarts < *limit) return true;
  FailJob(
      Format("Horovod was shutdown because number of resets during elastic job exceeded limit: {}",
             *limit));
  return false;
}

void ElasticChange::SetRunning(bool running) {
  elastic.running = running;
  elastic.time.SetTraining(running, now);
}

void ElasticChange::LeaveGeneration(uint32_t worker) {
  const RankRecord& record = state.ranks[worker];
  if (record.in_generation == 0 || record.in_generation != state.generation) return;
  SetRunning(false);
}

void ElasticChange::LoseMember(uint32_t worker) {
  const RankRecord& record = state.ranks[worker];
  if (record.in_generation != 0 && record.in_generation == state.generation) elastic.broken = true;
  LeaveGeneration(worker);
}

}  // namespace hvd
