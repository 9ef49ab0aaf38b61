#include "launcher/job/elastic/elastic_notice.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "launcher/job/state/worker_kinds.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"
#include "runtime/segment/job_page.h"

namespace hvd {
namespace {

// How long a rank that joins waits for others that are starting, so that training is interrupted
// once instead of twice.
constexpr Duration kGrowthPatience = std::chrono::seconds(5);

bool IsNew(const WorkerKind& worker) { return !worker.was_member && !worker.leaving(); }
bool IsNewAndWaits(const WorkerKind& worker) { return IsNew(worker) && worker.waiting(); }
bool IsNewAndStarts(const WorkerKind& worker) { return IsNew(worker) && !worker.waiting(); }

// Since when the first of the new ones has waited.
TimePoint FirstWaits(const ElasticChange& change) {
  TimePoint first = TimePoint::max();
  for (uint32_t worker : change.AliveWorkers(IsNewAndWaits))
    first = std::min(first, change.state.ranks[worker].init.since);
  return first;
}

}  // namespace

void HoldCommitsOfAll(ElasticChange& change, uint32_t update) {
  ElasticState& elastic = change.elastic;
  elastic.notice = CommitNotice::kHolding;
  elastic.notice_generation = change.state.generation;
  elastic.update = update;
  elastic.most_commits = 0;
  elastic.holding.clear();
  for (const Member& member : elastic.generation.members) elastic.holding.insert(member.place.host);
  change.Do(HoldCommits{change.state.generation});
}

// While a generation runs: ranks that join or leave, or a request to stop.
NoticePlan PlanNotice(const ElasticChange& change) {
  const bool idle = change.elastic.running && !change.elastic.restart;
  if (!idle || change.elastic.notice != CommitNotice::kNone || change.elastic.any_finished)
    return {};
  uint32_t update = 0;
  if (change.elastic.stop_asked) update |= kUpdateStop;
  if (change.AnyAlive([](const WorkerKind& w) { return w.in_generation && w.leaving(); }))
    update |= kUpdateRemoved;
  const size_t members =
      change.CountAlive([](const WorkerKind& w) { return w.in_generation && !w.leaving(); });
  const size_t new_ones = change.CountAlive(IsNewAndWaits);
  if (members >= change.elastic.policy.max_np || new_ones == 0) return {update, {}};
  const bool full = members + new_ones >= change.elastic.policy.max_np;
  if (full || !change.AnyAlive(IsNewAndStarts)) return {update | kUpdateAdded, {}};
  const TimePoint growth_at = FirstWaits(change) + kGrowthPatience;
  if (change.now >= growth_at) return {update | kUpdateAdded, {}};
  if (update != 0) return {update, {}};
  return {0, growth_at};
}

ActAtCommit OrderToAct(const ElasticState& elastic) {
  const auto grace =
      std::chrono::duration_cast<std::chrono::milliseconds>(elastic.stop_grace).count();
  return {elastic.notice_generation, elastic.most_commits + 1, elastic.update,
          static_cast<uint32_t>(grace)};
}

void HandleHeld(ElasticChange& change, const CommitsHeldBy& held) {
  if (change.elastic.notice != CommitNotice::kHolding ||
      held.held.generation != change.elastic.notice_generation)
    return;
  change.elastic.holding.erase(held.host);
  change.elastic.most_commits = std::max(change.elastic.most_commits, held.held.most);
  change.elastic.any_committed = change.elastic.any_committed || held.held.most > 0;
  if (!change.elastic.holding.empty()) return;
  change.elastic.notice = CommitNotice::kActing;
  const ActAtCommit order = OrderToAct(change.elastic);
  const uint64_t commit = order.commit;
  change.Do(order);
  change.SetReason(change.elastic.policy.stops_at_commit
                       ? Format("all ranks act at commit {}", commit)
                       : Format("signal {}: hvd.should_stop() is true from commit {} on",
                                change.elastic.stop_signal, commit));
}

void NoticeStop(ElasticChange& change, const StopAsked& asked) {
  const JobState& state = change.state;
  ElasticState& elastic = change.elastic;
  const bool in_world = std::ranges::any_of(state.ranks, [&state](const RankRecord& rank) {
    return state.generation > 0 && rank.in_generation == state.generation;
  });
  if (!in_world || (elastic.stop_asked && elastic.notice_generation == state.generation)) return;
  elastic.stop_asked = true;
  elastic.stop_signal = asked.signal;
  HoldCommitsOfAll(change, kUpdateStop);
}

void AskToStop(ElasticChange& change, const StopAsked& asked) {
  if (std::exchange(change.elastic.stop_asked, true)) return;
  change.elastic.stop_grace = asked.grace;
  change.elastic.stop_signal = asked.signal;
  const std::string agent =
      asked.host ? "the agent on host " + change.state.plan.hosts[*asked.host] + " was " : "";
  change.Notify(
      Format("{}asked to stop by signal {}: the ranks leave at their next commit, within {}", agent,
             asked.signal, SecondsText(asked.grace)));
}

}  // namespace hvd
