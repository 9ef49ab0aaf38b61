#include "launcher/job/elastic/elastic_notice.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"
#include "runtime/segment/job_page.h"

namespace hvd {
namespace {

// How long a rank that joins waits for others that are starting, so that training is interrupted
// once instead of twice.
constexpr Duration kGrowthPatience = std::chrono::seconds(5);

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
  if (!idle || change.elastic.notice != CommitNotice::kNone) return {};
  uint32_t update = 0;
  if (change.elastic.stop_asked) update |= kUpdateStop;
  bool starting = false;
  size_t members = 0, new_ones = 0;
  std::optional<TimePoint> first_waits;
  for (uint32_t worker : change.AliveWorkers()) {
    const RankRecord& record = change.state.ranks[worker];
    if (record.in_generation != 0 && record.leaving()) update |= kUpdateRemoved;
    members += record.in_generation != 0 && !record.leaving();
    if (record.was_member() || record.leaving()) continue;
    if (!record.waiting()) {
      starting = true;
      continue;
    }
    ++new_ones;
    first_waits = std::min(first_waits.value_or(record.init.since), record.init.since);
  }
  if (change.elastic.any_finished) return {};
  const bool room = members < change.elastic.policy.max_np;
  const bool full = members + new_ones >= change.elastic.policy.max_np;
  if (!room) first_waits.reset();
  if (first_waits && (!starting || full || change.now >= *first_waits + kGrowthPatience))
    update |= kUpdateAdded;
  if (update != 0 || !first_waits) return {update, {}};
  return {0, *first_waits + kGrowthPatience};
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
