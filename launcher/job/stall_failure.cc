#include "launcher/job/stall_failure.h"

#include <optional>
#include <utility>

namespace hvd {
namespace {

JobFailure StallFailure(std::string reason, const Verdict& verdict) {
  JobFailure failure;
  failure.kind = JobFailure::Kind::kStall;
  failure.exit_code = kStalledExitCode;
  failure.reason = std::move(reason);
  failure.verdict = verdict;
  return failure;
}

}  // namespace

std::string StallText(const Verdict& verdict) {
  std::string text = verdict.sentence + "\n" + verdict.details;
  text.pop_back();
  return text;
}

JobFailure EndlessStall(const Verdict& verdict) {
  return StallFailure(verdict.sentence +
                          "; it can never end, because each of the ranks that it needs has ended "
                          "or waits for others that wait",
                      verdict);
}

JobFailure EndingOf(const JobState& state, uint64_t generation, std::string reason) {
  const std::optional<StallExplained>& stall = state.stall;
  if (stall && stall->generation == generation && stall->verdict.limited)
    return StallFailure(std::move(reason), stall->verdict);
  JobFailure ending;
  ending.kind = JobFailure::Kind::kEnding;
  ending.reason = std::move(reason);
  return ending;
}

std::vector<uint32_t> HangingRanks(const Verdict& verdict) {
  std::vector<uint32_t> ranks;
  for (const MissingRank& missing : verdict.missing) {
    if (missing.found == RankClass::kBusy || missing.found == RankClass::kBlocked)
      ranks.push_back(missing.rank);
  }
  return ranks;
}

}  // namespace hvd
