#include "launcher/job/report/job_result.h"

#include <algorithm>
#include <vector>

#include "launcher/job/policy/failure_kind.h"
#include "launcher/job/report/first_cause.h"

namespace hvd {
namespace {

// The exit code of the job is a rank's.
bool IsOfARank(JobFailure::Kind kind) {
  return kind == JobFailure::Kind::kRank || kind == JobFailure::Kind::kEnding ||
         kind == JobFailure::Kind::kRoute;
}

}  // namespace

bool SaysThatAPeerWasLost(const JobState& state, const RankRecord& rank) {
  return state.generation == 0 && rank.end && !rank.end->by_signal &&
         IsPeerLoss(ExceptionSignature(rank.end->last_stderr));
}

std::optional<uint32_t> FirstFailedRank(const JobState& state) {
  std::vector<Departure> departures;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    const RankRecord& rank = state.ranks[r];
    const bool missing = rank.awaited && !rank.forgiven && !rank.ended_by_us();
    if (!rank.failed() && !missing) continue;
    departures.push_back(
        {r, state.plan.ranks[r].host, rank.parting ? rank.parting->stamp_ns : 0,
         rank.is_consequence() || rank.init_failed || SaysThatAPeerWasLost(state, rank),
         rank.end && rank.end->by_signal});
  }
  return FirstCause(departures, state.clocks);
}

int StopSignal(const JobState& state) {
  return state.elastic.stopping() ? state.elastic.stop_signal : 0;
}

bool EndedByItself(const JobState& state) {
  return state.interrupts == 0 &&
         !(state.failure && state.failure->kind == JobFailure::Kind::kTimeout);
}

int ExitCode(const JobState& state) {
  if (!state.failure) {
    const bool stopped = std::ranges::any_of(state.ranks, [](const RankRecord& rank) {
      return rank.end && rank.end->exit_code() == kStoppedExitCode;
    });
    return stopped && StopSignal(state) != 0 ? kStoppedExitCode : 0;
  }
  if (!IsOfARank(state.failure->kind)) return state.failure->exit_code;
  std::optional<uint32_t> first = FirstFailedRank(state);
  if (!first) return 1;
  const std::optional<ProcessEnd>& end = state.ranks[*first].end;
  // A rank that left its peers in the middle of a generation failed the job, even with exit code 0.
  return end && !end->ok() ? end->exit_code() : 1;
}

}  // namespace hvd
