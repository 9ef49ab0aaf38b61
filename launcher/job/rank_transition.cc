#include "launcher/job/rank_transition.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>

#include "launcher/job/elastic/elastic_generations.h"
#include "launcher/job/elastic/elastic_losses.h"
#include "launcher/job/job_ending.h"
#include "launcher/job/state/rank_text.h"
#include "launcher/process/process_end.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// A clock that is being corrected may be off by more than the uncertainty of its last reading.
constexpr Duration kClocksMayStep = std::chrono::milliseconds(200);

}  // namespace

void RankTransition::Handle(const WorkerStarted& event) {
  if (!Known(event.rank)) return;
  RankRecord& rank = state_.ranks[event.rank];
  if (rank.ended() || rank.pid != 0) return;
  if (rank.state == WorkerState::kStarting) state_.Move(event.rank, WorkerState::kOutside);
  rank.pid = event.pid;
  // The job asked it to end before its start was reported.
  if (state_.elastic.restart) change_.Do(SignalWorker{event.rank, SIGTERM});
  RunWhenAllBegun();
}

void RankTransition::RunWhenAllBegun() {
  if (state_.phase != JobPhase::kStarting || state_.counts.begun < state_.ranks.size()) return;
  state_.phase = JobPhase::kRunning;
  state_.deadline.reset();
  change_.SetReason("all workers are started");
}

void RankTransition::Handle(const WorkerNotStarted& event) {
  if (!Known(event.rank)) return;
  state_.Move(event.rank, WorkerState::kEnded);
  if (change_.MayReplace() && state_.generation > 0) {
    return LoseUnstarted(members_, event.rank, event.reason);
  }
  JobFailure failure;
  failure.kind = JobFailure::Kind::kCommand;
  failure.exit_code = event.error == ENOENT || event.error == ENOTDIR ? kCommandNotFound
                      : event.error == EADDRINUSE                     ? 1  // its command exists
                                                                      : kCommandNotExecutable;
  failure.rank = event.rank;
  failure.reason = event.reason;
  FailJob(change_, std::move(failure), Format("rank {} could not be started", event.rank));
  FinishWhenAllEnded(change_);
}

void RankTransition::Handle(const RankJoined& event) {
  if (!Known(event.rank)) return;
  if (state_.ranks[event.rank].ended()) return;
  AddWaiting(members_, event.rank);
  if (state_.policy().outlives_losses || state_.counts.ended + state_.counts.lost == 0) return;
  for (uint32_t r = 0; r < state_.ranks.size(); ++r) {
    if (!state_.ranks[r].alive()) return BreakWaiting(r);
  }
}

// Fails hvd.init() in ranks that wait for a world that can no longer form. `missing`: a lost rank.
void RankTransition::BreakWaiting(uint32_t missing) {
  if (state_.counts.waiting == 0) return;
  for (uint32_t r = 0; r < state_.ranks.size(); ++r) {
    RankRecord& rank = state_.ranks[r];
    rank.init_failed = rank.init_failed || rank.waiting();
    state_.StopWaiting(r);
  }
  RankRecord& gone = state_.ranks[missing];
  gone.awaited = true;
  const std::string how = gone.end    ? EndText(*gone.end)
                          : gone.loss ? "was lost"
                                      : "could not be started";
  const std::string again = state_.generation > 0 ? " again" : "";
  const std::string reason =
      Format("{} {} before it called hvd.init(){}, so the world of {} cannot form",
             RankText(state_, missing), how, again, state_.plan.size());
  change_.Do(BreakGeneration{0, reason});
  change_.SetReason(reason);
}

void RankTransition::Handle(const RankLeft& event) {
  if (!Known(event.rank)) return;
  members_.LeaveGeneration(event.rank);
  state_.LeaveWorld(event.rank);
  if (!state_.ranks[event.rank].parting) Part(event.rank, event.noticed_ns, event.had_failed);
}

// The job had asked it to end by then. An event from a distant host, or one that was away, may
// arrive late.
bool RankTransition::WasAsked(uint32_t rank, int64_t stamp_ns) const {
  if (!state_.asked_at) return false;
  const std::optional<HostClock::Moment> moment =
      state_.clocks[state_.plan.ranks[rank].host].Convert(stamp_ns);
  return !moment || moment->at + moment->uncertainty + kClocksMayStep >= *state_.asked_at;
}

void RankTransition::Part(uint32_t rank, int64_t stamp_ns, bool had_failed) {
  state_.ranks[rank].parting = Parting{stamp_ns, had_failed || WasAsked(rank, stamp_ns)};
}

void RankTransition::Handle(const RankLost& event) {
  if (!Known(event.rank)) return;
  RankRecord& rank = state_.ranks[event.rank];
  state_.StopWaiting(event.rank);
  if (event.generation == 0 || rank.in_generation != event.generation) return;
  members_.LoseMember(event.rank);
  state_.Lose(event.rank, {WasAsked(event.rank, event.noticed_ns), event.reason, event.doing});
  Part(event.rank, event.noticed_ns, event.had_failed);
  if (event.pid != 0 && rank.pid == 0) rank.pid = event.pid;
  change_.Do(BreakGeneration{event.generation, event.reason});
  // What that means is decided when its process has ended; until then it may touch the memory of
  // others.
  if (change_.MayReplace()) return change_.Do(SignalWorker{event.rank, SIGKILL});
  if (state_.ending) return FailOf(event.rank, event.reason);
  // In a job of fixed size one with exit code 0 may have left after its last collective.
  change_.SetReason(event.reason);
  if (!state_.failure) state_.leave_by = change_.now + state_.options.leave_limit;
}

void RankTransition::FailOf(uint32_t rank, std::string reason) {
  JobFailure failure;
  failure.rank = rank;
  FailJob(change_, std::move(failure), std::move(reason));
}

void RankTransition::Handle(const WorkerExited& event) {
  if (!Known(event.rank) || state_.ranks[event.rank].end) return;
  RankRecord& rank = state_.ranks[event.rank];
  state_.Move(event.rank, WorkerState::kEnded);
  // It was asked to end, and ends as asked, with or without a goodbye. After Ctrl-C every failure
  // is a consequence: of a KeyboardInterrupt, or of a peer that had one.
  const bool asked = WasAsked(event.rank, event.noticed_ns);
  const bool by_us =
      asked && (!rank.loss || rank.loss->when_asked) &&
      (state_.killing || event.end.by_signal || event.end.exit_code() > kSignalBase ||
       (state_.interrupting && !event.end.ok()));
  rank.end = WorkerEnd{event.end, by_us, event.out_of_memory, event.last_stderr, event.commits};
  if (!rank.parting) Part(event.rank, event.noticed_ns, false);
  if (!change_.MayReplace()) BreakWaiting(event.rank);
  HandleEnd(members_, event.rank);
}

}  // namespace hvd
