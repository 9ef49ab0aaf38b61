#include "launcher/job/job.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/elastic/elastic_hosts.h"
#include "launcher/job/elastic/elastic_losses.h"
#include "launcher/job/elastic/elastic_notice.h"
#include "launcher/job/elastic/elastic_restart.h"
#include "launcher/job/elastic/elastic_spares.h"
#include "launcher/job/elastic/membership.h"
#include "launcher/job/host_transition.h"
#include "launcher/job/job_ending.h"
#include "launcher/job/job_opening.h"
#include "launcher/job/job_pause.h"
#include "launcher/job/job_places.h"
#include "launcher/job/rank_transition.h"
#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"
#include "launcher/job/state/rank_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

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

// A wait that can never end.
JobFailure EndlessStall(const Verdict& verdict) {
  return StallFailure(EndlessText(verdict), verdict);
}

// Ranks that use another library's collectives have hung for longer than the limit.
JobFailure ScriptStallFailure(const Verdict& verdict) {
  return StallFailure(verdict.sentence + ", longer than --stall-check-shutdown-time-seconds allows",
                      verdict);
}

// A rank ends its generation. If that was for a stall limit, the verdict on that stall explains
// it.
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

// The ranks of a verdict that are busy or blocked elsewhere, and so do not notice that their
// generation is over.
std::vector<uint32_t> HangingRanks(const Verdict& verdict) {
  std::vector<uint32_t> ranks;
  for (const MissingRank& missing : verdict.missing) {
    if (missing.found == RankClass::kBusy || missing.found == RankClass::kBlocked)
      ranks.push_back(missing.rank);
  }
  return ranks;
}

// After every event: starts or ends the watch over ranks that wait in hvd.init().
void WatchInit(JobChange& change) {
  if (change.state.counts.waiting == 0 || change.state.phase >= JobPhase::kStopping) {
    change.state.init_watch.reset();
  } else if (!change.state.init_watch) {
    change.state.init_watch =
        JobState::InitWatch{change.now, change.now + change.state.options.init_watch};
  }
}

void ReportMissingRanks(JobChange& change) {
  JobState::InitWatch& watch = *change.state.init_watch;
  std::vector<uint32_t> missing;
  for (uint32_t r = 0; r < change.state.ranks.size(); ++r) {
    if (!change.state.ranks[r].waiting()) missing.push_back(r);
  }
  size_t waiting = change.state.ranks.size() - missing.size();
  std::string sentence =
      Format("{}{} not called hvd.init(){}; {} of {}{} there, the first for {}",
             RanksText(change.state, missing), missing.size() == 1 ? " has" : " have",
             change.state.generation > 0 ? " again" : "", waiting, change.state.ranks.size(),
             waiting == 1 ? " ranks waits" : " ranks wait", SecondsText(change.now - watch.since));
  change.Do(NotifyUser{std::move(sentence)});
  // After 10 s, then 10, 30 and 60 s later, then every 60 s.
  constexpr int kTimes[] = {1, 3, 6};
  watch.next = change.now + change.state.options.init_watch * kTimes[std::min(watch.times++, 2)];
}

// Stands for the default grace of a stop after a step.
constexpr Duration kNoGrace{};

// Sends each event to the part that it concerns.
class JobTransition {
 public:
  JobTransition(JobState& state, TimePoint now)
      : state_(state),
        now_(now),
        change_{state, now},
        members_(change_),
        hosts_(members_),
        ranks_(members_) {}

  void On(const Begun&);
  void On(const Adopted& event) { Adopt(change_, event); }
  // The others are of hosts or of ranks.
  template <typename Event>
  void On(const Event& event) {
    if constexpr (requires { hosts_.Handle(event); }) {
      hosts_.Handle(event);
    } else {
      ranks_.Handle(event);
    }
  }
  void On(const HostEntered& event) { EnterStage(change_, event); }
  void On(const HostTroubled& event) { NoteTrouble(change_, event); }
  void On(const HostProven& event) { HandleProof(change_, event); }
  void On(const RouteMeasured& event) { HandleMeasured(change_, event); }
  void On(const Interrupted& event);
  void On(const Tick&);
  void On(const Paused&) { Pause(change_); }
  void On(const Resumed&) { Resume(change_); }
  void On(const ClockRead& event) { state_.clocks[event.host].Add(event.reading); }
  void On(const GenerationEnding& event);
  void On(const StallExplained& event);
  void On(const ScriptStall& event);
  void On(const HostIdle& event) {
    if (event.generation == state_.generation)
      state_.elastic.time.SetIdle(event.host, event.idle, now_);
  }
  void On(const RankStopped& event);
  void On(const SilentRoute& event);
  void On(const HostsListed& event) {
    if (change_.AtWork()) HandleListing(members_, event);
  }
  void On(const CommitsHeldBy& event) {
    if (change_.AtWork() || state_.policy().serves_while_ending) HandleHeld(members_, event);
  }
  void On(const StopAsked& event);
  void On(const PlaceEvent& event) {
    if (HandlePlaceEvent(change_, event)) ReviewHosts(change_);
  }
  void On(const LauncherEnded& event) { HandleLauncherEnd(change_, event); }
  void On(const MemoryReply& event) {
    if (change_.AtWork()) HandleMemory(members_, event);
  }

  // After every event: the consequences of all that is known.
  void Review();
  Decision PopDecision() { return std::move(change_.decision); }

 private:
  bool MayStopAfterStep() const;
  bool GenerationIsOver() const;
  void EndStop();
  void ReplaceHanging(const std::vector<uint32_t>& ranks);
  void BreakFor(uint64_t generation, JobFailure ending);
  const std::string& HostOf(uint32_t rank) const {
    return state_.plan.hosts[state_.plan.ranks[rank].host];
  }

  JobState& state_;
  const TimePoint now_;
  JobChange change_;
  ElasticChange members_;
  HostTransition hosts_;
  RankTransition ranks_;
};

void JobTransition::On(const Begun&) {
  state_.stages.Begin(now_);
  if (state_.options.timeout > Duration::zero()) {
    state_.timeout_at = now_ + state_.options.timeout;
  }
}

void JobTransition::On(const GenerationEnding& event) {
  const std::optional<uint32_t> worker = state_.WorkerOf(event.by.rank);
  if (!worker || state_.ranks[*worker].in_generation != event.generation) return;
  JobFailure ending = EndingOf(state_, event);
  ending.rank = *worker;
  const bool was_running = state_.elastic.running;
  const std::vector<uint32_t> hanging = HangingRanks(ending.verdict);
  BreakFor(event.generation, std::move(ending));
  if (was_running && change_.MayReplace()) ReplaceHanging(hanging);
}

// They would not join the next generation, and must not touch the memory of the others.
void JobTransition::ReplaceHanging(const std::vector<uint32_t>& ranks) {
  for (uint32_t rank : ranks) {
    const std::optional<uint32_t> worker = state_.WorkerOf(rank);
    if (!worker) continue;
    change_.Notify(RankText(state_, *worker) +
                   " hangs and was ended, so that the others can go on");
    change_.Do(SignalWorker{*worker, SIGKILL});
    state_.Change(*worker, [](RankRecord& record) { record.end_by = TimePoint::max(); });
  }
}

void JobTransition::On(const StallExplained& event) {
  if (event.generation != state_.generation || GenerationIsOver()) return;
  state_.stall = event;
  change_.Notify(StallText(event.verdict));
  if (event.verdict.never_ends) BreakFor(event.generation, EndlessStall(event.verdict));
}

// Its ranks are in no generation.
void JobTransition::On(const ScriptStall& event) {
  if (GenerationIsOver() || !change_.AtWork()) return;
  if (event.is_new) change_.Notify(StallText(event.verdict));
  if (!event.ends) return;
  if (change_.MayReplace()) return RestartAll(members_, event.verdict.sentence);
  JobFailure failure = ScriptStallFailure(event.verdict);
  std::string reason = failure.reason;
  FailJob(change_, std::move(failure), std::move(reason));
}

void JobTransition::On(const RankStopped& event) {
  const std::optional<uint32_t> worker = state_.WorkerOf(event.rank);
  if (!worker) return;
  state_.stopped.insert(*worker);
  if (change_.MayReplace()) EndStopped(members_, *worker);
}

// hvdrun still receives from both hosts (SilentRoutes::Broken).
void JobTransition::On(const SilentRoute& event) {
  const std::optional<uint32_t> rank = state_.WorkerOf(event.rank);
  const std::optional<uint32_t> peer = state_.WorkerOf(event.peer);
  if (!rank || !peer || state_.ranks[*rank].in_generation != event.generation) return;
  const auto rank_on_host = [this](uint32_t worker) {
    return Format("rank {} on {}", state_.ranks[worker].rank, HostOf(worker));
  };
  JobFailure ending;
  ending.kind = JobFailure::Kind::kRoute;
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

// Further failures of its ranks have a cause that is known already.
bool JobTransition::GenerationIsOver() const {
  return state_.failure || state_.ending || (state_.elastic.broken && !change_.MayReplace());
}

// The ranks learn why, and either fail or form another generation.
void JobTransition::BreakFor(uint64_t generation, JobFailure ending) {
  if (GenerationIsOver()) return;
  change_.SetReason(ending.reason);
  change_.Do(BreakGeneration{generation, ending.reason});
  if (change_.MayReplace()) return EndGeneration(members_, ending);
  state_.ending = std::move(ending);
}

void JobTransition::On(const Interrupted& event) {
  if (event.signal == SIGTERM && MayStopAfterStep()) return On(StopAsked{SIGTERM, kNoGrace});
  HandleInterrupt(change_, event.signal);
}

// Ranks that commit can leave cleanly.
bool JobTransition::MayStopAfterStep() const {
  return change_.MayReplace() && state_.elastic.running && !state_.elastic.stop_asked;
}

void JobTransition::On(const StopAsked& event) {
  if (!state_.policy().stops_at_commit) {
    if (change_.AtWork()) NoticeStop(members_, event);
    return;
  }
  if (!MayStopAfterStep()) {
    if (state_.elastic.stop_asked) return;
    return event.host ? hosts_.End(*event.host, event.signal) : On(Interrupted{SIGTERM});
  }
  StopAsked asked = event;
  if (asked.grace == kNoGrace) asked.grace = state_.options.stop_grace;
  state_.elastic.stop_by = now_ + asked.grace;
  AskToStop(members_, asked);
}

// The grace of a stop after a step is over.
void JobTransition::EndStop() {
  state_.elastic.stop_by.reset();
  On(Interrupted{SIGTERM});
}

void JobTransition::Review() {
  if (std::optional<JobFailure> failure = ReviewMembers(members_))
    FailJob(change_, std::move(*failure), members_.failure_reason);
  if (change_.MayReplace()) ranks_.RunWhenAllBegun();  // those that were still starting may be gone
  FinishWhenAllEnded(change_);
  if (!state_.policy().limits_waits()) WatchInit(change_);
  ExplainMembers(members_);
}

void JobTransition::On(const Tick&) {
  if (state_.timeout_at && now_ >= *state_.timeout_at) TimeOut(change_);
  CutDismissed(change_);
  if (state_.init_watch && now_ >= state_.init_watch->next) ReportMissingRanks(change_);
  if (state_.leave_by && now_ >= *state_.leave_by) EndWaitForLeavers(change_);
  hosts_.Expire();
  if (state_.elastic.stop_by && now_ >= *state_.elastic.stop_by) EndStop();
  if (HandleLauncherDeadline(change_)) return;
  if (state_.phase == JobPhase::kOpening && !change_.MayReplace()) return ReviewHosts(change_);
  HandleDeadline(change_);
}

// When a host that the job still waits for is to be reported or given up.
std::optional<TimePoint> NextHostExpiry(const JobState& state) {
  return state.at_work() ? state.stages.NextExpiry() : std::nullopt;
}

}  // namespace

std::optional<TimePoint> NextTick(const JobState& state) {
  if (state.paused_at) return std::nullopt;
  const bool hosts_open = state.phase == JobPhase::kOpening && !state.places.asked;
  std::optional<TimePoint> next = hosts_open ? state.stages.deadline() : state.deadline;
  if (state.timeout_at && (!next || *state.timeout_at < *next)) next = state.timeout_at;
  if (state.places.end_by && (!next || *state.places.end_by < *next)) next = state.places.end_by;
  if (state.dismissed_by && (!next || *state.dismissed_by < *next)) next = state.dismissed_by;
  if (state.leave_by && (!next || *state.leave_by < *next)) next = state.leave_by;
  if (state.init_watch && (!next || state.init_watch->next < *next)) next = state.init_watch->next;
  for (const std::optional<TimePoint>& time :
       {NextHostExpiry(state), state.elastic.stop_by, NextMembershipTick(state)}) {
    if (time && (!next || *time < *next)) next = time;
  }
  return next;
}

Decision Step(JobState& state, const JobEvent& event, TimePoint now) {
  JobTransition transition(state, now);
  if (std::holds_alternative<Tick>(event) && state.paused_at) return transition.PopDecision();
  // Whatever the event, hvdrun runs again.
  if (!std::holds_alternative<Paused>(event)) transition.On(Resumed{});
  std::visit([&](const auto& e) { transition.On(e); }, event);
  transition.Review();
  return transition.PopDecision();
}

}  // namespace hvd
