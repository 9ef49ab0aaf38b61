#include "launcher/stall/stall_rounds.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Limit for an agent, which needs 0.2 s for its answer.
constexpr Duration kAnswerLimit = std::chrono::seconds(1);

}  // namespace

void StallRounds::Begin(const Plan& plan, const StallReport& report, TimePoint now) {
  if (round_.is_open() && generation_ == report.generation) return;
  generation_ = report.generation;
  second_ = false;
  stacks_ = {report.awaited.begin(), report.awaited.end()};
  stacks_.insert(report.waiting);
  AskAll(plan, now);
}

void StallRounds::AskAll(const Plan& plan, TimePoint now) {
  now_ = {};
  now_.ranks.resize(plan.ranks.size());
  for (const Placement& place : plan.ranks) now_.hosts.push_back(plan.hosts[place.host]);
  const std::vector<uint32_t> hosts = plan.UsedHosts();
  const ExamineRanks question{
      round_.Begin(hosts, now + kAnswerLimit), generation_, {stacks_.begin(), stacks_.end()}};
  for (uint32_t host : hosts) ask_(host, question);
}

Status StallRounds::Handle(const Plan& plan, uint32_t host, const RanksExamined& answer) {
  for (const RankFacts& facts : answer.ranks) {
    if (facts.in_world == 0) continue;  // a slot that has no rank now
    if (facts.rank >= plan.ranks.size() || plan.ranks[facts.rank].host != host)
      return InvalidArgument(Format("its agent reported unknown rank {}", facts.rank));
  }
  if (answer.generation != generation_ || !round_.NoteAnswer(host, answer.number))
    return Status::Ok();
  for (const RankFacts& facts : answer.ranks) {
    const bool known = facts.rank < std::min(now_.ranks.size(), plan.ranks.size()) &&
                       plan.ranks[facts.rank].host == host;
    if (known && (facts.in_world != 0 || !now_.ranks[facts.rank])) now_.ranks[facts.rank] = facts;
  }
  return Status::Ok();
}

std::optional<StallExplained> StallRounds::Result(const Plan& plan, TimePoint now) {
  if (!round_.Close(now)) return std::nullopt;
  const std::set<uint32_t> never = NeverEnding(second_ ? before_ : now_, now_);
  if (!never.empty() && !std::exchange(second_, true)) {
    before_ = now_;
    stacks_.insert(never.begin(), never.end());
    AskAll(plan, now);
    return std::nullopt;
  }
  std::optional<Verdict> verdict = Explain(now_, never, 0);
  if (!verdict) return std::nullopt;
  return StallExplained{generation_, std::move(*verdict)};
}

}  // namespace hvd
