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

JobFailure EndlessStall(const Verdict& verdict) {
  return StallFailure(EndlessText(verdict), verdict);
}

JobFailure ScriptStallFailure(const Verdict& verdict) {
  return StallFailure(verdict.sentence + ", longer than --stall-check-shutdown-time-seconds allows",
                      verdict);
}

JobFailure EndingOf(const JobState& state, const GenerationEnding& event) {
  if (event.by.stalled) {
    const std::optional<StallExplained>& stall = state.stall;
    const bool known = stall && stall->generation == event.generation;
    return StallFailure(event.by.reason, known ? stall->verdict : Verdict{});
  }
  JobFailure ending;
  ending.kind = JobFailure::Kind::kEnding;
  ending.reason = event.by.reason;
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
