#include "launcher/job/job.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/elastic_change.h"
#include "launcher/job/elastic_generations.h"
#include "launcher/job/elastic_hosts.h"
#include "launcher/job/elastic_losses.h"
#include "launcher/job/elastic_notice.h"
#include "launcher/job/elastic_spares.h"
#include "launcher/job/fixed_generations.h"
#include "launcher/job/init_watch.h"
#include "launcher/job/job_change.h"
#include "launcher/job/job_ending.h"
#include "launcher/job/job_opening.h"
#include "launcher/job/job_pause.h"
#include "launcher/job/job_result.h"
#include "launcher/job/membership.h"
#include "launcher/job/rank_text.h"
#include "launcher/job/stall_failure.h"
#include "launcher/text/seconds_text.h"

namespace hvd {
namespace {

// The job's own grace for a stop after a step.
constexpr Duration kNoGrace{};
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kSignalBase = 128;
// A clock that is being corrected by much is off by more than its last reading says.
constexpr Duration kClocksMayStep = std::chrono::milliseconds(200);

// Sends each event to the part that it concerns.
class JobTransition {
 public:
  JobTransition(JobState& state, TimePoint now) : state_(state), now_(now), change_{state, now} {
    if (state_.elastic) members_.emplace(change_);
  }

  void On(const Begun&);
  void On(const HostEntered& event) { EnterStage(change_, event); }
  void On(const HostTroubled& event) { NoteTrouble(change_, event); }
  void On(const AgentIsReady& event);
  void On(const HostProven& event) { TakeProof(change_, event); }
  void On(const RouteMeasured& event) { TakeMeasured(change_, event); }
  void On(const AgentLost& event);
  void On(const AgentFinished& event);
  void On(const Interrupted& event);
  void On(const Tick&);
  void On(const Paused&) { Pause(change_); }
  void On(const Resumed&) { Resume(change_); }
  void On(const WorkerStarted& event);
  void On(const WorkerNotStarted& event);
  void On(const RankJoined& event);
  void On(const RankLeft& event);
  void On(const RankLost& event);
  void On(const WorkerExited& event);
  void On(const ClockRead& event) { state_.clocks[event.host].Add(event.reading); }
  void On(const GenerationEnding& event);
  void On(const StallExplained& event);
  void On(const RankStopped& event);
  void On(const SilentRoute& event);
  void On(const HostsListed& event) {
    if (change_.IsElastic()) TakeListing(*members_, event);
  }
  void On(const CommitsHeldBy& event) {
    if (change_.IsElastic()) TakeHeld(*members_, event);
  }
  void On(const StopAsked& event);
  void On(const MemoryTold& event) {
    if (change_.IsElastic()) TakeMemory(*members_, event);
  }

  // After every event: what follows from all that is known.
  void Review();
  Decision Take() { return std::move(change_.decision); }

 private:
  bool Known(uint32_t rank) const { return rank < state_.ranks.size(); }
  void RunWhenAllBegun();
  bool MayStopAfterStep() const;
  void EndAgent(uint32_t host, int signal);
  void EndStop();
  void ExpireHosts();
  bool FailedOfIt(uint32_t host) const;
  bool WasAsked(uint32_t rank, int64_t stamp_ns) const;
  void Departs(uint32_t rank, int64_t stamp_ns, bool had_failed);
  void ReplaceHanging(const std::vector<uint32_t>& ranks);
  void BreakFor(uint64_t generation, JobFailure ending);
  const std::string& HostOf(uint32_t rank) const {
    return state_.plan.hosts[state_.plan.ranks[rank].host];
  }

  JobState& state_;
  const TimePoint now_;
  JobChange change_;
  std::optional<ElasticChange> members_;  // of an elastic job
};

void JobTransition::On(const Begun&) {
  state_.stages.Begin(now_);
  if (state_.options.timeout > Duration::zero()) {
    state_.timeout_at = now_ + state_.options.timeout;
  }
}

void JobTransition::On(const AgentIsReady& event) {
  if (change_.IsElastic()) return TakeFacts(*members_, event.host, event.facts);
  TakeAgent(change_, event);
}

void JobTransition::On(const WorkerStarted& event) {
  if (!Known(event.rank)) return;
  RankRecord& rank = state_.ranks[event.rank];
  if (rank.phase != RankPhase::kStarting) return;
  state_.Becomes(rank, RankPhase::kRunning);
  rank.pid = event.pid;
  // Asked to end before it was known to run.
  if (state_.elastic && state_.elastic->restart) change_.Do(SignalWorker{event.rank, SIGTERM});
  RunWhenAllBegun();
}

void JobTransition::RunWhenAllBegun() {
  if (state_.phase != JobPhase::kStarting || state_.counts.begun < state_.ranks.size()) return;
  state_.phase = JobPhase::kRunning;
  state_.deadline.reset();
  change_.Because("all workers are started");
}

void JobTransition::On(const WorkerNotStarted& event) {
  if (!Known(event.rank)) return;
  state_.Becomes(state_.ranks[event.rank], RankPhase::kEnded);
  if (change_.IsElastic() && state_.generation > 0) {
    return LoseUnstarted(*members_, event.rank, event.reason);
  }
  JobFailure failure;
  failure.kind = JobFailure::Kind::kCommand;
  failure.exit_code = event.error == ENOENT || event.error == ENOTDIR ? kNotFound
                      : event.error == EADDRINUSE                     ? 1  // its command is good
                                                                      : kNotExecutable;
  failure.rank = event.rank;
  failure.reason = event.reason;
  FailJob(change_, std::move(failure),
          "rank " + std::to_string(event.rank) + " could not be started");
  FinishWhenAllEnded(change_);
}

void JobTransition::On(const RankJoined& event) {
  if (!Known(event.rank)) return;
  RankRecord& rank = state_.ranks[event.rank];
  if (rank.phase == RankPhase::kEnded) return;
  if (change_.IsElastic()) return TakeWaiting(*members_, event.rank);
  state_.Waits(rank, true);
  if (state_.elastic) return;  // the job ends
  rank.in_generation = 0;
  rank.departed_ns = 0;
  rank.is_consequence = false;
  if (state_.counts.ended + state_.counts.lost == 0) return BeginWhenAllWait(change_);
  for (uint32_t r = 0; r < state_.ranks.size(); ++r) {
    if (state_.ranks[r].phase == RankPhase::kEnded || state_.ranks[r].lost)
      return BreakWaiting(change_, r);
  }
  BeginWhenAllWait(change_);
}

void JobTransition::On(const RankLeft& event) {
  if (!Known(event.rank)) return;
  RankRecord& rank = state_.ranks[event.rank];
  if (state_.elastic) members_->LeaveGeneration(event.rank);
  rank.in_generation = 0;
  if (rank.departed_ns == 0) Departs(event.rank, event.noticed_ns, event.had_failed);
}

// Had the job asked it to end by then? What happened on a host that is far away, or was away, may
// be heard of later.
bool JobTransition::WasAsked(uint32_t rank, int64_t stamp_ns) const {
  if (!state_.asked_at) return false;
  const std::optional<HostClock::Moment> moment =
      state_.clocks[state_.plan.ranks[rank].host].Convert(stamp_ns);
  return !moment || moment->at + moment->uncertainty + kClocksMayStep >= *state_.asked_at;
}

void JobTransition::Departs(uint32_t rank, int64_t stamp_ns, bool had_failed) {
  state_.ranks[rank].departed_ns = stamp_ns;
  state_.ranks[rank].is_consequence = had_failed || WasAsked(rank, stamp_ns);
}

void JobTransition::On(const RankLost& event) {
  if (!Known(event.rank)) return;
  RankRecord& rank = state_.ranks[event.rank];
  state_.Waits(rank, false);
  if (event.generation == 0 || rank.in_generation != event.generation) return;
  if (state_.elastic) members_->LoseMember(event.rank);
  rank.in_generation = 0;
  state_.counts.lost += !rank.lost;
  rank.lost = true;
  rank.lost_when_asked = WasAsked(event.rank, event.noticed_ns);
  Departs(event.rank, event.noticed_ns, event.had_failed);
  rank.lost_reason = event.reason;
  rank.doing = event.doing;
  if (event.pid != 0 && rank.pid == 0) rank.pid = event.pid;
  change_.Do(BreakGeneration{event.generation, event.reason});
  // What it means is decided when it has ended; until then it may touch the memory of others.
  if (change_.IsElastic()) return change_.Do(SignalWorker{event.rank, SIGKILL});
  JobFailure failure;
  failure.rank = event.rank;
  FailJob(change_, std::move(failure), event.reason);
}

void JobTransition::On(const WorkerExited& event) {
  if (!Known(event.rank) || state_.ranks[event.rank].end) return;
  RankRecord& rank = state_.ranks[event.rank];
  state_.Becomes(rank, RankPhase::kEnded);
  state_.Waits(rank, false);
  rank.end = event.end;
  rank.last_stderr = event.last_stderr;
  rank.out_of_memory = event.out_of_memory;
  // A rank that was asked to end and then ends so, whether it had said goodbye before or not. After
  // Ctrl-C every failure is a consequence: of a KeyboardInterrupt, or of a peer that had one.
  const bool asked = WasAsked(event.rank, event.noticed_ns);
  rank.ended_by_us =
      asked && (!rank.lost || rank.lost_when_asked) &&
      (state_.killing || event.end.by_signal || event.end.exit_code() > kSignalBase ||
       (state_.interrupting && !event.end.ok()));
  rank.commits = event.commits;
  if (rank.departed_ns == 0) Departs(event.rank, event.noticed_ns, false);
  if (change_.IsElastic()) return TakeEnd(*members_, event.rank);
  BreakWaiting(change_, event.rank);
  if (!event.end.ok() && !rank.ended_by_us) {
    JobFailure failure;
    failure.rank = event.rank;
    FailJob(change_, std::move(failure), RankText(state_, event.rank) + " " + EndText(event.end));
  }
  FinishWhenAllEnded(change_);
}

void JobTransition::On(const GenerationEnding& event) {
  const std::optional<uint32_t> worker = state_.WorkerOf(event.by.rank);
  if (!worker || state_.ranks[*worker].in_generation != event.generation) return;
  JobFailure ending = EndingOf(state_, event.generation, event.by.reason);
  ending.rank = *worker;
  const bool was_running = state_.elastic && state_.elastic->running;
  const std::vector<uint32_t> hanging = HangingRanks(ending.verdict);
  BreakFor(event.generation, std::move(ending));
  if (was_running && change_.IsElastic()) ReplaceHanging(hanging);
}

// They would not come to the next generation, and must not touch the memory of the others.
void JobTransition::ReplaceHanging(const std::vector<uint32_t>& ranks) {
  for (uint32_t rank : ranks) {
    const std::optional<uint32_t> worker = state_.WorkerOf(rank);
    if (!worker) continue;
    change_.Tell(RankText(state_, *worker) + " hangs and was ended, so that the others can go on");
    change_.Do(SignalWorker{*worker, SIGKILL});
  }
}

void JobTransition::On(const StallExplained& event) {
  if (event.generation != state_.generation || state_.ending || state_.failure) return;
  state_.stall = event;
  change_.Tell(StallText(event.verdict));
  if (event.verdict.never_ends) BreakFor(event.generation, EndlessStall(event.verdict));
}

void JobTransition::On(const RankStopped& event) {
  const std::optional<uint32_t> worker = state_.WorkerOf(event.rank);
  if (!worker) return;
  state_.ranks[*worker].stopped = true;
  if (change_.IsElastic()) EndStopped(*members_, *worker);
}

// Of two hosts that are both heard (SilentRoutes::Broken).
void JobTransition::On(const SilentRoute& event) {
  const std::optional<uint32_t> rank = state_.WorkerOf(event.rank);
  const std::optional<uint32_t> peer = state_.WorkerOf(event.peer);
  if (!rank || !peer || state_.ranks[*rank].in_generation != event.generation) return;
  const auto rank_on_host = [this](uint32_t worker) {
    return "rank " + std::to_string(state_.ranks[worker].rank) + " on " + HostOf(worker);
  };
  JobFailure ending;
  ending.kind = JobFailure::Kind::kWay;
  ending.rank = *rank;
  ending.peer = *peer;
  ending.reason =
      "the connection between the hosts " + HostOf(*rank) + " and " + HostOf(*peer) +
      " is broken: " + rank_on_host(*rank) + " has heard nothing from " + rank_on_host(*peer) +
      " for " + SecondsText(std::chrono::floor<std::chrono::seconds>(event.silent)) +
      ", though hvdrun reaches both hosts; look for a firewall or a fault of the network between "
      "them";
  BreakFor(event.generation, std::move(ending));
}

// The ranks are told why. They may take it as the end, or go on with another generation.
void JobTransition::BreakFor(uint64_t generation, JobFailure ending) {
  if (state_.ending || state_.failure) return;
  change_.Because(ending.reason);
  change_.Do(BreakGeneration{generation, ending.reason});
  if (change_.IsElastic()) return EndGeneration(*members_, ending);
  state_.ending = std::move(ending);
}

void JobTransition::On(const Interrupted& event) {
  if (event.signal == SIGTERM && MayStopAfterStep()) return On(StopAsked{SIGTERM, kNoGrace});
  TakeInterrupt(change_, event.signal);
}

// Ranks that commit can leave in good order.
bool JobTransition::MayStopAfterStep() const {
  return change_.IsElastic() && state_.elastic->running && !state_.elastic->stop_asked;
}

void JobTransition::On(const StopAsked& event) {
  if (!MayStopAfterStep()) {
    if (state_.elastic && state_.elastic->stop_asked) return;
    return event.host ? EndAgent(*event.host, event.signal) : On(Interrupted{SIGTERM});
  }
  StopAsked asked = event;
  if (asked.grace == kNoGrace) asked.grace = state_.options.stop_grace;
  state_.elastic->stop_by = now_ + asked.grace;
  AskToStop(*members_, asked);
}

// The agent was asked to end while the ranks do not train, and passed that on. It ends now, as it
// would have by itself.
void JobTransition::EndAgent(uint32_t host, int signal) {
  if (!change_.IsElastic() || state_.elastic->hosts[host].gone) return;
  change_.Do(CutHost{host});
  LoseHost(*members_, host, "its agent was asked to end by signal " + std::to_string(signal));
}

// Ranks that were asked to stop after a step have had their time.
void JobTransition::EndStop() {
  state_.elastic->stop_by.reset();
  On(Interrupted{SIGTERM});
}

void JobTransition::Review() {
  if (!state_.elastic) return WatchInit(change_);
  if (change_.IsElastic()) {
    if (std::optional<JobFailure> failure = ReviewMembers(*members_)) {
      std::string reason = failure->reason;
      FailJob(change_, std::move(*failure), std::move(reason));
    }
  }
  if (change_.IsElastic()) RunWhenAllBegun();  // those that were still starting may be gone
  FinishWhenAllEnded(change_);
}

void JobTransition::On(const Tick&) {
  if (state_.timeout_at && now_ >= *state_.timeout_at) TimeOut(change_);
  CutDismissed(change_);
  if (state_.init_watch && now_ >= state_.init_watch->next) ReportMissingRanks(change_);
  if (state_.elastic) ExpireHosts();
  if (state_.elastic && state_.elastic->stop_by && now_ >= *state_.elastic->stop_by) EndStop();
  if (state_.phase == JobPhase::kOpening && !state_.elastic) {
    state_.stages.Expire(now_);
    std::string slow = state_.stages.TakeSlow(state_.plan.hosts, now_);
    if (!slow.empty()) change_.Do(NotifyUser{"the job has not started yet; " + slow});
    return LookAtHosts(change_);
  }
  TakeDeadline(change_);
}

// Hosts that were too slow on their way are given up.
void JobTransition::ExpireHosts() {
  state_.stages.Expire(now_);
  const std::string slow = state_.stages.TakeSlow(state_.plan.hosts, now_);
  if (!slow.empty()) change_.Do(NotifyUser{"waiting for hosts: " + slow});
  for (uint32_t host = 0; host < state_.elastic->hosts.size(); ++host) {
    const bool failed = state_.stages.stage(host) == HostStage::kFailed;
    if (!failed || state_.elastic->hosts[host].gone) continue;
    change_.Do(CutHost{host});
    if (change_.IsElastic()) LoseHost(*members_, host, state_.stages.TroubleOf(host));
  }
}

void JobTransition::On(const AgentFinished& event) {
  state_.host_open[event.host] = false;
  EndWhenAllClosed(change_);
}

// Did only ranks of other hosts fail, and a moment ago? Who loses a peer may say so sooner than the
// end of the peer's host is heard.
bool JobTransition::FailedOfIt(uint32_t host) const {
  if (state_.phase != JobPhase::kStopping || state_.asked()) return false;
  if (!state_.failure) return false;
  if (state_.failure->kind == JobFailure::Kind::kWay) {
    return state_.plan.ranks[state_.failure->rank].host == host ||
           state_.plan.ranks[state_.failure->peer].host == host;
  }
  if (state_.failure->kind != JobFailure::Kind::kRank) return false;
  const std::optional<uint32_t> first = FirstFailedRank(state_);
  return first && state_.plan.ranks[*first].host != host;
}

void JobTransition::On(const AgentLost& event) {
  if (!state_.host_open[event.host]) return;
  state_.host_open[event.host] = false;
  if (change_.IsElastic()) return LoseHost(*members_, event.host, event.reason);
  if (state_.dismissed[event.host]) return EndWhenAllClosed(change_);
  if (state_.phase == JobPhase::kOpening) {
    state_.stages.Fail(event.host, event.reason, now_);
    return LookAtHosts(change_);
  }
  bool took_ranks = false;
  for (const Placement& place : state_.plan.ranks) {
    if (place.host != event.host) continue;
    RankRecord& rank = state_.ranks[place.rank];
    took_ranks = took_ranks || rank.phase != RankPhase::kEnded;
    state_.Becomes(rank, RankPhase::kEnded);
    state_.Waits(rank, false);
  }
  JobFailure failure;
  failure.kind = JobFailure::Kind::kHost;
  failure.host = event.host;
  failure.reason = event.reason;
  if (took_ranks && FailedOfIt(event.host)) {
    state_.failure = std::move(failure);
    change_.Because(event.reason);
  } else {
    FailJob(change_, std::move(failure), event.reason);
  }
  FinishWhenAllEnded(change_);
  EndWhenAllClosed(change_);
}

}  // namespace

std::optional<TimePoint> NextTick(const JobState& state) {
  if (state.paused_at) return std::nullopt;
  const bool opens = state.phase == JobPhase::kOpening && !state.elastic;
  std::optional<TimePoint> next = opens ? state.stages.deadline() : state.deadline;
  if (state.timeout_at && (!next || *state.timeout_at < *next)) next = state.timeout_at;
  if (state.dismissed_by && (!next || *state.dismissed_by < *next)) next = state.dismissed_by;
  if (state.init_watch && (!next || state.init_watch->next < *next)) next = state.init_watch->next;
  if (!state.elastic) return next;
  for (const std::optional<TimePoint>& time :
       {state.stages.NextExpiry(), state.elastic->stop_by, NextMembershipTick(state)}) {
    if (time && (!next || *time < *next)) next = time;
  }
  return next;
}

Decision Step(JobState& state, const JobEvent& event, TimePoint now) {
  JobTransition stepper(state, now);
  if (std::holds_alternative<Tick>(event) && state.paused_at) return stepper.Take();
  // hvdrun runs again, whichever event it hears of first.
  if (!std::holds_alternative<Paused>(event)) stepper.On(Resumed{});
  std::visit([&](const auto& e) { stepper.On(e); }, event);
  stepper.Review();
  return stepper.Take();
}

}  // namespace hvd
