#include "launcher/job/job_ending.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/report/job_result.h"
#include "launcher/job/state/rank_text.h"
#include "launcher/output/text/phrases.h"
#include "launcher/process/process_end.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Graces are shorter after a stall: ranks that hang have already had time.
Duration AtMost(const JobChange& change, Duration grace) {
  constexpr Duration kAfterStall = std::chrono::milliseconds(500);
  const std::optional<JobFailure>& failure = change.state.failure;
  return failure && failure->kind == JobFailure::Kind::kStall ? std::min(grace, kAfterStall)
                                                              : grace;
}

void WaitForGrace(JobChange& change) {
  change.state.deadline = change.now + AtMost(change, change.state.options.terminate_grace);
  // A grace of "forever" must not overflow.
  if (*change.state.deadline < change.now) change.state.deadline = TimePoint::max();
}

bool AllEnded(const JobChange& change) {
  return change.state.counts.ended == change.state.ranks.size();
}

void AskToEnd(JobChange& change, int signal) {
  if (!change.state.asked_at) change.state.asked_at = change.now;
  change.Do(SignalWorkers{signal});
}

void Terminate(JobChange& change) {
  change.state.phase = JobPhase::kStopping;
  if (AllEnded(change)) return;
  change.state.terminating = true;
  AskToEnd(change, SIGTERM);
  WaitForGrace(change);
}

// As a terminal does for a foreground program, so that the user's Ctrl-C handler runs.
void Interrupt(JobChange& change) {
  change.state.phase = JobPhase::kStopping;
  if (AllEnded(change)) return;
  const std::string grace = SecondsText(change.state.options.terminate_grace);
  change.Do(NotifyUser{"interrupted: every rank gets SIGINT now, SIGTERM after " + grace +
                           " and SIGKILL " + grace + " later; Ctrl-C again kills them at once",
                       /*terminal_only=*/true});
  change.state.interrupting = true;
  AskToEnd(change, SIGINT);
  WaitForGrace(change);
}

void Kill(JobChange& change) {
  change.state.phase = JobPhase::kStopping;
  change.state.killing = true;
  AskToEnd(change, SIGKILL);
  change.state.deadline = change.now + change.state.options.finish_limit;
}

// Hosts whose agent could not be told that the job is over.
void CutConnectingHosts(JobChange& change) {
  for (uint32_t host = 0; host < change.state.host_open.size(); ++host) {
    const HostStage stage = change.state.stages.stage(host);
    const bool greeted = stage >= HostStage::kProof && stage <= HostStage::kReady;
    if (change.state.host_open[host] && !greeted) change.Do(CutHost{host});
  }
}

// No user code runs yet: connected agents end, and the other hosts are given up.
void EndOpening(JobChange& change) {
  for (uint32_t r = 0; r < change.state.ranks.size(); ++r)
    change.state.Move(r, WorkerState::kEnded);
  change.state.phase = JobPhase::kFinishing;
  change.state.deadline = change.now + change.state.options.finish_limit;
  change.Do(FinishJob{});
  CutConnectingHosts(change);
  EndWhenAllClosed(change);
}

void FailStart(JobChange& change) {
  JobFailure failure;
  failure.kind = JobFailure::Kind::kInternal;
  failure.reason = "the workers were not started within " +
                   SecondsText(change.state.options.start_timeout) +
                   "; is a host overloaded? A longer --start-timeout gives it more time";
  std::string reason = failure.reason;
  FailJob(change, std::move(failure), std::move(reason));
}

// All workers have ended, and no more will be started.
bool MayFinish(const JobChange& change) {
  if (!AllEnded(change)) return false;
  return !change.AtWork() || change.state.elastic.any_finished || change.state.elastic.stop_asked;
}

// Ranks that exited without a goodbye, and that no other rank has missed.
void NotifyOfMissingGoodbyes(JobChange& change) {
  if (change.state.failure || change.state.counts.lost == 0) return;
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < change.state.ranks.size(); ++r) {
    const RankRecord& rank = change.state.ranks[r];
    if (rank.loss && rank.end && rank.end->ok() && !rank.forgiven) ranks.push_back(r);
  }
  if (ranks.empty()) return;
  change.Notify(RanksText(change.state, ranks) +
                " ended with exit code 0 in the middle of the job, without hvd.shutdown(); no rank "
                "failed because of that, so the job has succeeded. Call hvd.shutdown() before "
                "os._exit()");
}

void FailOfLost(JobChange& change, bool with_code_0) {
  for (uint32_t r = 0; r < change.state.ranks.size(); ++r) {
    const RankRecord& rank = change.state.ranks[r];
    if (!rank.loss || rank.forgiven || (rank.end && !with_code_0)) continue;
    JobFailure failure;
    failure.rank = r;
    return FailJob(change, std::move(failure), rank.loss->reason);
  }
}

void ReportGoodput(JobChange& change) {
  ElasticState& elastic = change.state.elastic;
  elastic.time.NoteEnd(change.now);
  if (elastic.time.total() == Duration{}) return;  // not measured in a job of fixed size
  const uint64_t again = elastic.resets + elastic.restarts;
  if (again == 0 || change.state.generation == 0)
    return;  // too little is known about a script without generations
  change.Do(NotifyUser{Format("{}; they began again {}{}", elastic.time.Text(), again,
                              again == 1 ? " time" : " times")});
}

}  // namespace

void EndWhenAllClosed(JobChange& change) {
  if (change.state.phase != JobPhase::kFinishing) return;
  if (std::find(change.state.host_open.begin(), change.state.host_open.end(), true) !=
      change.state.host_open.end())
    return;
  change.state.phase = JobPhase::kDone;
  change.state.deadline.reset();
  change.Do(EndRun{});
}

// Records the first failure and begins to end the others.
void FailJob(JobChange& change, JobFailure failure, std::string reason) {
  if (change.state.failure || change.state.phase >= JobPhase::kFinishing) return;
  bool rank_failed = failure.kind == JobFailure::Kind::kRank;
  change.state.failure =
      rank_failed && change.state.ending ? *change.state.ending : std::move(failure);
  if (change.state.phase == JobPhase::kStopping) return;
  change.SetReason(std::move(reason));
  if (change.state.phase == JobPhase::kOpening) return EndOpening(change);
  // Ranks that shared a generation learn from the page what happened, and may report it. With
  // another runtime, the loss of a peer may not have been reported yet. All other ranks have
  // nothing to report.
  const bool peer_lost =
      rank_failed &&
      SaysThatAPeerWasLost(change.state, change.state.ranks[change.state.failure->rank]);
  if (rank_failed && (change.state.generation > 0 || peer_lost)) {
    change.state.phase = JobPhase::kStopping;
    change.state.deadline = change.now + AtMost(change, change.state.options.survivor_grace);
  } else {
    Terminate(change);
  }
}

void FailOfLostRank(JobChange& change) {
  if (change.state.leave_by) FailOfLost(change, /*with_code_0=*/false);
}

void EndWaitForLeavers(JobChange& change) {
  change.state.leave_by.reset();
  const uint64_t generation = change.state.generation;
  FailOfLost(change, std::ranges::any_of(change.state.ranks, [generation](const RankRecord& rank) {
               return rank.in_generation == generation && !rank.ended();
             }));
}

void TimeOut(JobChange& change) {
  change.state.timeout_at.reset();
  FailOfLostRank(change);
  if (change.state.failure || change.state.phase >= JobPhase::kFinishing) return;
  JobFailure failure;
  failure.kind = JobFailure::Kind::kTimeout;
  failure.exit_code = kTimedOutExitCode;
  failure.reason = "the job did not end within the " + SecondsText(change.state.options.timeout) +
                   " of --timeout; all ranks were ended";
  std::string reason = failure.reason;
  FailJob(change, std::move(failure), std::move(reason));
}

void HandleDeadline(JobChange& change) {
  if (!change.state.deadline || change.now < *change.state.deadline) return;
  change.state.deadline.reset();
  if (change.state.phase == JobPhase::kStarting) {
    FailStart(change);
  } else if (change.state.phase == JobPhase::kFinishing || change.state.killing) {
    change.Do(CutChannels{});
    change.SetReason("an agent does not end what it was told to end");
  } else if (change.state.phase == JobPhase::kStopping) {
    if (change.state.terminating) {
      Kill(change);
      change.SetReason("workers outlived the grace period");
    } else {
      Terminate(change);
      change.SetReason(change.state.interrupting ? "workers outlived SIGINT"
                                                 : "workers outlived the failure of a peer");
    }
  }
}

void FinishWhenAllEnded(JobChange& change) {
  if (change.state.phase >= JobPhase::kFinishing || !MayFinish(change)) return;
  change.state.phase = JobPhase::kFinishing;
  change.state.deadline.reset();
  if (!EndedByItself(change.state))
    change.state.deadline = change.now + change.state.options.finish_limit;
  change.Do(FinishJob{});
  CutConnectingHosts(change);
  NotifyOfMissingGoodbyes(change);
  ReportGoodput(change);
  if (change.decision.reason.empty()) change.SetReason("all workers have ended");
  EndWhenAllClosed(change);
}

void HandleInterrupt(JobChange& change, int signal) {
  if (change.state.phase ==
      JobPhase::kFinishing) {  // only output is left, and the user does not want to wait for it
    ++change.state.interrupts;
    change.Do(CutChannels{});
    return change.SetReason("interrupted while the last output was printed");
  }
  ++change.state.interrupts;
  FailOfLostRank(change);
  if (!change.state.failure) {
    JobFailure failure;
    failure.kind = JobFailure::Kind::kInterrupt;
    failure.exit_code = kSignalBase + signal;
    failure.signal = signal;
    change.state.failure = std::move(failure);
  }
  if (change.state.phase == JobPhase::kOpening) {
    EndOpening(change);
    change.SetReason(Format("asked to end by signal {}", signal));
  } else if (change.state.interrupts == 1) {
    const bool failed = change.state.failure->kind != JobFailure::Kind::kInterrupt;
    if (signal == SIGINT && !failed) {
      Interrupt(change);
    } else if (!change.state.terminating) {
      Terminate(change);
    }
    change.SetReason(Format("asked to end by signal {}", signal));
  } else if (signal != SIGINT && !change.state.terminating && !change.state.killing) {
    Terminate(change);  // a program around hvdrun passes Ctrl-C on as SIGTERM
    change.SetReason(Format("asked to end by signal {}", signal));
  } else if (!change.state.killing) {
    Kill(change);
    change.SetReason("asked a second time to end");
  }
}

}  // namespace hvd
