#include "launcher/job/job.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "launcher/job/first_cause.h"
#include "launcher/job/membership.h"
#include "launcher/text/rank_ranges.h"
#include "launcher/text/seconds_text.h"

namespace hvd {
namespace {

// The job's own grace for a stop after a step.
constexpr Duration kNoGrace{};
constexpr int kUsageError = 2;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kTimedOut = 124;  // as timeout(1) says it
constexpr int kSignalBase = 128;
// A clock that is being corrected by much is off by more than its last reading says.
constexpr Duration kClocksMayStep = std::chrono::milliseconds(200);

std::string RankText(const JobState& state, uint32_t rank) {
  std::string text = "rank " + std::to_string(state.ranks[rank].rank);
  if (state.ranks[rank].pid != 0) text += " (pid " + std::to_string(state.ranks[rank].pid) + ")";
  return text;
}

std::string EndText(const ProcessEnd& end) {
  return end.by_signal ? "was ended by signal " + std::to_string(end.value)
                       : "ended with exit code " + std::to_string(end.value);
}

// The exit code of the job is a rank's.
bool IsOfARank(JobFailure::Kind kind) {
  return kind == JobFailure::Kind::kRank || kind == JobFailure::Kind::kEnding ||
         kind == JobFailure::Kind::kWay;
}

// "rank 2 (pid 1234)", "ranks 0,2-3 (pids 1230, 1232, 1233)"
std::string RanksText(const JobState& state, const std::vector<uint32_t>& ranks) {
  constexpr size_t kMaxPids = 16;
  if (ranks.size() == 1) return RankText(state, ranks.front());
  std::string pids;
  size_t shown = 0, left = 0;
  for (uint32_t rank : ranks) {
    if (state.ranks[rank].pid == 0) continue;
    if (shown == kMaxPids) {
      ++left;
      continue;
    }
    pids += (shown++ > 0 ? ", " : "") + std::to_string(state.ranks[rank].pid);
  }
  if (left > 0) pids += " and " + std::to_string(left) + " more";
  return "ranks " + RankRanges(ranks) + (pids.empty() ? "" : " (pids " + pids + ")");
}

// One event's worth of work on the state; gathers what was decided.
class JobTransition {
 public:
  JobTransition(JobState& state, TimePoint now) : state_(state), now_(now) {
    if (state_.elastic) members_.emplace(state_, decision_, now_);
  }

  void On(const Begun&);
  void On(const HostEntered& event);
  void On(const HostTroubled& event);
  void On(const AgentIsReady& event);
  void On(const HostProven& event);
  void On(const RouteMeasured& event);
  void On(const AgentLost& event);
  void On(const AgentFinished& event);
  void On(const Interrupted& event);
  void On(const Tick&);
  void On(const Paused&);
  void On(const Resumed&);
  void On(const WorkerStarted& event);
  void On(const WorkerNotStarted& event);
  void On(const RankJoined& event);
  void On(const RankLeft& event);
  void On(const RankLost& event);
  void On(const WorkerExited& event);
  void On(const ClockRead& event) { state_.clocks[event.host].Add(event.reading); }
  void On(const GenerationEnding& event);
  void On(const RankStopped& event);
  void On(const SilentRoute& event);
  void On(const HostsListed& event) {
    if (IsElastic()) Members().OnListed(event);
  }
  void On(const CommitsHeldBy& event) {
    if (IsElastic()) Members().OnHeld(event);
  }
  void On(const StopAsked& event);

  // After every event: what follows from all that is known.
  void Review();
  void WatchInit();
  Decision Take() { return std::move(decision_); }

 private:
  bool Known(uint32_t rank) const { return rank < state_.ranks.size(); }
  bool AllEnded() const { return state_.counts.ended == state_.ranks.size(); }
  // The ranks of the job may change now; later it only ends.
  bool IsElastic() const {
    return state_.elastic && state_.phase <= JobPhase::kRunning && !state_.failure;
  }
  Membership& Members() { return *members_; }
  void Becomes(RankRecord& rank, RankPhase phase) { state_.Becomes(rank, phase); }
  void Waits(RankRecord& rank, bool waiting) { state_.Waits(rank, waiting); }
  void Do(auto action) { decision_.actions.emplace_back(std::move(action)); }
  void Because(std::string reason) { decision_.reason = std::move(reason); }

  bool SettlePlan();
  void Dismiss(uint32_t host);
  void CutDismissed();
  bool CommandIsThere();
  void LookAtHosts();
  void DecideAboutBlocked();
  void EndOpening();
  void RunWhenAllBegun();
  void BeginWhenAllWait();
  void BreakWaiting(uint32_t rank);
  void ReportMissingRanks();
  void Fail(JobFailure failure, std::string reason);
  void Interrupt();
  void Terminate();
  void Kill();
  void WaitForGrace();
  void FailStart();
  void TimeOut();
  void FinishWhenAllEnded();
  void ReportGoodput();
  void EndWhenAllClosed();
  bool MayStopAfterStep() const;
  void EndStop();
  bool MayFinish() const;
  void ExpireHosts();
  bool FailedOfIt(uint32_t host) const;
  bool WasAsked(uint32_t rank, int64_t stamp_ns) const;
  void Departs(uint32_t rank, int64_t stamp_ns, bool had_failed);
  void AskToEnd(int signal);
  void EndGeneration(uint64_t generation, JobFailure ending);
  const std::string& HostOf(uint32_t rank) const {
    return state_.plan.hosts[state_.plan.ranks[rank].host];
  }

  JobState& state_;
  TimePoint now_;
  Decision decision_;
  std::optional<Membership> members_;  // of an elastic job
};

void JobTransition::On(const Begun&) {
  state_.stages.Begin(now_);
  if (state_.options.timeout > Duration::zero()) {
    state_.timeout_at = now_ + state_.options.timeout;
  }
}

void JobTransition::On(const HostEntered& event) {
  if (state_.phase != JobPhase::kOpening && !IsElastic()) return;
  bool again = state_.stages.stage(event.host) == event.stage;
  state_.stages.Enter(event.host, event.stage, now_);
  decision_.detail = true;
  if (again && event.stage != HostStage::kResolve) return;  // or some of hvdrun has left
  Because("host " + state_.plan.hosts[event.host] + ": " + StageText(event.stage));
}

void JobTransition::On(const HostTroubled& event) {
  if (state_.phase != JobPhase::kOpening && !IsElastic()) return;
  const bool known = state_.stages.tried_again(event.host);
  state_.stages.Trouble(event.host, event.stage, event.reason);
  if (known) return;
  Because("host " + state_.plan.hosts[event.host] + ": " + event.reason + "; it is tried again");
}

void JobTransition::On(const AgentIsReady& event) {
  if (IsElastic()) return Members().OnAgentReady(event.host, event.facts);
  if (state_.phase != JobPhase::kOpening) return;
  if (state_.stages.stage(event.host) >= HostStage::kProof) return;
  state_.stages.Enter(event.host, HostStage::kThere, now_);
  state_.facts[event.host] = event.facts;
  if (!state_.stages.All(HostStage::kThere)) return LookAtHosts();
  if (!SettlePlan() || !CommandIsThere()) return;
  std::vector<uint32_t> used = state_.plan.UsedHosts();
  bool prove = state_.options.prove_addresses && used.size() > 1;
  for (uint32_t host : used)
    state_.stages.Enter(host, prove ? HostStage::kProof : HostStage::kReady, now_);
  if (!prove) return LookAtHosts();
  Do(ProveAddresses{});
}

// All agents are there. False: there can be no plan, and the job ends.
bool JobTransition::SettlePlan() {
  if (state_.named_hosts.empty()) return true;
  Result<FinalPlan> final = MakeFinalPlan(state_.named_hosts, state_.facts, state_.plan.size());
  if (!final.ok()) {
    JobFailure failure;
    failure.kind = JobFailure::Kind::kHosts;
    failure.exit_code = kUsageError;
    failure.reason = final.status().message() + ". Nothing was started.\n";
    Fail(std::move(failure), "the hosts have too few slots");
    return false;
  }
  state_.plan = std::move(final->plan);
  Do(UsePlan{});
  for (std::string& note : final->notes) Do(NotifyUser{std::move(note)});
  for (uint32_t host : final->no_rank) Dismiss(host);
  return true;
}

void JobTransition::Dismiss(uint32_t host) {
  state_.dismissed[host] = true;
  state_.dismissed_by = now_ + state_.options.finish_limit;
  state_.stages.Enter(host, HostStage::kReady, now_);
  Do(DismissHost{host});
}

void JobTransition::CutDismissed() {
  if (!state_.dismissed_by || now_ < *state_.dismissed_by) return;
  state_.dismissed_by.reset();
  for (uint32_t host = 0; host < state_.host_open.size(); ++host) {
    if (state_.dismissed[host] && state_.host_open[host]) Do(CutHost{host});
  }
}

// False: some host cannot start the command, and the job ends.
bool JobTransition::CommandIsThere() {
  std::vector<std::string> names;
  std::vector<CommandFacts> facts;
  for (uint32_t host : state_.plan.UsedHosts()) {
    names.push_back(state_.plan.hosts[host]);
    facts.push_back(state_.facts[host].command);
  }
  if (std::optional<CommandTrouble> trouble = FindCommandTrouble(names, facts)) {
    JobFailure failure;
    failure.kind = JobFailure::Kind::kCommand;
    failure.exit_code = trouble->exit_code;
    failure.reason = std::move(trouble->sentence);
    Fail(std::move(failure), "a host cannot start the command");
    return false;
  }
  std::string differ = PythonsDiffer(names, facts);
  if (!differ.empty()) Do(NotifyUser{std::move(differ)});
  return true;
}

void JobTransition::On(const HostProven& event) {
  if (state_.phase != JobPhase::kOpening) return;
  if (!event.trouble.empty()) {
    state_.stages.Fail(event.host, event.trouble, now_);
    return LookAtHosts();
  }
  state_.blocked.insert(state_.blocked.end(), event.blocked.begin(), event.blocked.end());
  state_.stages.Enter(event.host, event.blocked.empty() ? HostStage::kReady : HostStage::kThere,
                      now_);
  if (!state_.blocked.empty() && state_.stages.NoneInFlight() && !state_.stages.any_failed())
    DecideAboutBlocked();
  LookAtHosts();
}

// Every host has looked for the others, and some were not found.
void JobTransition::DecideAboutBlocked() {
  const std::string why_not = WhyNotRelayed(state_.options.relay, state_.plan.UsedHosts().size());
  std::sort(state_.blocked.begin(), state_.blocked.end(), [](const auto& a, const auto& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  RelayRoutes relay;
  for (const BlockedRoute& route : state_.blocked) {
    relay.routes.emplace_back(route.from, route.to);
    state_.stages.Enter(route.from, HostStage::kProof, now_);
    if (!why_not.empty())
      state_.stages.Fail(route.from, TroubleOfBlocked(state_.blocked, route.from, why_not), now_);
  }
  if (why_not.empty()) Do(std::move(relay));
}

void JobTransition::On(const RouteMeasured& event) {
  if (state_.phase != JobPhase::kOpening) return;
  bool host_done = true, all_done = true;
  for (BlockedRoute& route : state_.blocked) {
    if (route.from == event.host && route.to == event.to) {
      route.speed = event.speed;
      route.measured = true;
    }
    host_done = host_done && (route.measured || route.from != event.host);
    all_done = all_done && route.measured;
  }
  if (!event.speed.trouble.empty()) {
    state_.stages.Fail(event.host,
                       "the way through this machine, which it needs, does not work: " +
                           event.speed.trouble + "; look at the load of this machine",
                       now_);
  } else if (host_done) {
    state_.stages.Enter(event.host, HostStage::kReady, now_);
  }
  if (all_done && !state_.stages.any_failed())
    Do(NotifyUser{RelayWarning(state_.blocked, state_.plan.hosts, state_.plan.UsedHosts().size())});
  LookAtHosts();
}

// While the job is opening: is there something to do about its hosts?
void JobTransition::LookAtHosts() {
  if (state_.stages.All(HostStage::kReady)) {
    state_.phase = JobPhase::kStarting;
    state_.deadline = now_ + state_.options.start_timeout;
    Do(StartWorkers{});
    decision_.detail = true;  // what is started is said next
    return Because("all hosts are ready");
  }
  if (!state_.stages.Lost(now_)) return;
  JobFailure failure;
  failure.kind = JobFailure::Kind::kHosts;
  failure.host = state_.stages.first_failed();
  failure.reason = state_.stages.Report(state_.plan.hosts);
  Fail(std::move(failure), "a host cannot be used");
}

// Nothing of the user's runs yet: agents that are there end, the others are given up.
void JobTransition::EndOpening() {
  for (RankRecord& rank : state_.ranks) Becomes(rank, RankPhase::kEnded);
  state_.phase = JobPhase::kFinishing;
  state_.deadline = now_ + state_.options.finish_limit;
  Do(FinishJob{});
  for (uint32_t host = 0; host < state_.host_open.size(); ++host) {
    HostStage stage = state_.stages.stage(host);
    bool greeted = stage >= HostStage::kProof && stage <= HostStage::kReady;
    if (state_.host_open[host] && !greeted) Do(CutHost{host});
  }
  EndWhenAllClosed();
}

void JobTransition::On(const WorkerStarted& event) {
  if (!Known(event.rank)) return;
  RankRecord& rank = state_.ranks[event.rank];
  if (rank.phase != RankPhase::kStarting) return;
  Becomes(rank, RankPhase::kRunning);
  rank.pid = event.pid;
  // Asked to end before it was known to run.
  if (state_.elastic && state_.elastic->restart) Do(SignalWorker{event.rank, SIGTERM});
  RunWhenAllBegun();
}

void JobTransition::RunWhenAllBegun() {
  if (state_.phase != JobPhase::kStarting || state_.counts.begun < state_.ranks.size()) return;
  state_.phase = JobPhase::kRunning;
  state_.deadline.reset();
  Because("all workers are started");
}

void JobTransition::On(const WorkerNotStarted& event) {
  if (!Known(event.rank)) return;
  Becomes(state_.ranks[event.rank], RankPhase::kEnded);
  if (IsElastic() && state_.generation > 0) {
    return Members().OnNotStarted(event.rank, event.reason);
  }
  JobFailure failure;
  failure.kind = JobFailure::Kind::kCommand;
  failure.exit_code = event.error == ENOENT || event.error == ENOTDIR ? kNotFound
                      : event.error == EADDRINUSE                     ? 1  // its command is good
                                                                      : kNotExecutable;
  failure.rank = event.rank;
  failure.reason = event.reason;
  Fail(std::move(failure), "rank " + std::to_string(event.rank) + " could not be started");
  FinishWhenAllEnded();
}

void JobTransition::On(const RankJoined& event) {
  if (!Known(event.rank)) return;
  RankRecord& rank = state_.ranks[event.rank];
  if (rank.phase == RankPhase::kEnded) return;
  if (IsElastic()) return Members().OnJoined(event.rank);
  Waits(rank, true);
  if (state_.elastic) return;  // the job ends
  rank.in_generation = 0;
  rank.departed_ns = 0;
  rank.is_consequence = false;
  if (state_.counts.ended + state_.counts.lost == 0) return BeginWhenAllWait();
  for (uint32_t r = 0; r < state_.ranks.size(); ++r) {
    if (state_.ranks[r].phase == RankPhase::kEnded || state_.ranks[r].lost) return BreakWaiting(r);
  }
  BeginWhenAllWait();
}

// After every event: is there something to watch?
void JobTransition::WatchInit() {
  if (state_.elastic) return;  // Membership does
  if (state_.counts.waiting == 0 || state_.phase >= JobPhase::kStopping) {
    state_.init_watch.reset();
  } else if (!state_.init_watch) {
    state_.init_watch = JobState::InitWatch{now_, now_ + state_.options.init_watch};
  }
}

void JobTransition::ReportMissingRanks() {
  JobState::InitWatch& watch = *state_.init_watch;
  std::vector<uint32_t> missing;
  for (uint32_t r = 0; r < state_.ranks.size(); ++r) {
    if (!state_.ranks[r].waiting) missing.push_back(r);
  }
  size_t waiting = state_.ranks.size() - missing.size();
  std::string sentence = RanksText(state_, missing) + (missing.size() == 1 ? " has" : " have") +
                         " not called hvd.init()" + (state_.generation > 0 ? " again" : "") + "; " +
                         std::to_string(waiting) + " of " + std::to_string(state_.ranks.size()) +
                         (waiting == 1 ? " ranks waits" : " ranks wait") +
                         " there, the first for " + SecondsText(now_ - watch.since);
  Do(NotifyUser{std::move(sentence)});
  // After 10 s, then 10, 30 and 60 s later, then every 60 s.
  constexpr int kTimes[] = {1, 3, 6};
  watch.next = now_ + state_.options.init_watch * kTimes[std::min(watch.times++, 2)];
}

void JobTransition::BeginWhenAllWait() {
  if (state_.counts.waiting < state_.ranks.size()) return;
  ++state_.generation;
  state_.ending.reset();
  for (RankRecord& rank : state_.ranks) {
    rank.stopped = false;
    Waits(rank, false);
    rank.in_generation = state_.generation;
  }
  Do(BeginGeneration{state_.generation});
  Because("every rank called hvd.init(): generation " + std::to_string(state_.generation));
}

// Ranks that wait for a world which can no longer form are told so.
void JobTransition::BreakWaiting(uint32_t missing) {
  if (state_.counts.waiting == 0 || IsElastic()) return;
  for (RankRecord& rank : state_.ranks) Waits(rank, false);
  const RankRecord& gone = state_.ranks[missing];
  std::string how = gone.end ? EndText(*gone.end) : gone.lost ? "was lost" : "could not be started";
  std::string again = state_.generation > 0 ? " again" : "";
  std::string reason = RankText(state_, missing) + " " + how + " before it called hvd.init()" +
                       again + ", so the world of " + std::to_string(state_.plan.size()) +
                       " cannot form";
  Do(BreakGeneration{0, reason});
  Because(reason);
}

void JobTransition::On(const RankLeft& event) {
  if (!Known(event.rank)) return;
  RankRecord& rank = state_.ranks[event.rank];
  if (state_.elastic) Members().OnLeft(event.rank);
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
  Waits(rank, false);
  if (event.generation == 0 || rank.in_generation != event.generation) return;
  if (state_.elastic) Members().OnLeft(event.rank);
  rank.in_generation = 0;
  state_.counts.lost += !rank.lost;
  rank.lost = true;
  rank.lost_when_asked = WasAsked(event.rank, event.noticed_ns);
  Departs(event.rank, event.noticed_ns, event.had_failed);
  rank.lost_reason = event.reason;
  rank.doing = event.doing;
  if (event.pid != 0 && rank.pid == 0) rank.pid = event.pid;
  Do(BreakGeneration{event.generation, event.reason});
  // What it means is decided when it has ended; until then it may touch the memory of others.
  if (IsElastic()) return Do(SignalWorker{event.rank, SIGKILL});
  JobFailure failure;
  failure.rank = event.rank;
  Fail(std::move(failure), event.reason);
}

void JobTransition::On(const WorkerExited& event) {
  if (!Known(event.rank) || state_.ranks[event.rank].end) return;
  RankRecord& rank = state_.ranks[event.rank];
  Becomes(rank, RankPhase::kEnded);
  Waits(rank, false);
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
  if (IsElastic()) return Members().OnExited(event.rank);
  BreakWaiting(event.rank);
  if (!event.end.ok() && !rank.ended_by_us) {
    JobFailure failure;
    failure.rank = event.rank;
    Fail(std::move(failure), RankText(state_, event.rank) + " " + EndText(event.end));
  }
  FinishWhenAllEnded();
}

void JobTransition::On(const GenerationEnding& event) {
  const std::optional<uint32_t> worker = state_.WorkerOf(event.by.rank);
  if (!worker || state_.ranks[*worker].in_generation != event.generation) return;
  JobFailure ending;
  ending.kind = JobFailure::Kind::kEnding;
  ending.rank = *worker;
  ending.reason = event.by.reason;
  EndGeneration(event.generation, std::move(ending));
}

void JobTransition::On(const RankStopped& event) {
  const std::optional<uint32_t> worker = state_.WorkerOf(event.rank);
  if (!worker) return;
  state_.ranks[*worker].stopped = true;
  if (IsElastic()) Members().OnStopped(*worker);
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
  EndGeneration(event.generation, std::move(ending));
}

// The ranks are told why. They may take it as the end, or go on with another generation.
void JobTransition::EndGeneration(uint64_t generation, JobFailure ending) {
  if (state_.ending || state_.failure) return;
  Because(ending.reason);
  Do(BreakGeneration{generation, ending.reason});
  if (IsElastic()) return Members().OnEnding(ending);
  state_.ending = std::move(ending);
}

// Records the first failure and begins to end the others.
void JobTransition::Fail(JobFailure failure, std::string reason) {
  if (state_.failure || state_.phase >= JobPhase::kFinishing) return;
  bool rank_failed = failure.kind == JobFailure::Kind::kRank;
  state_.failure = rank_failed && state_.ending ? *state_.ending : std::move(failure);
  if (state_.phase == JobPhase::kStopping) return;
  Because(std::move(reason));
  if (state_.phase == JobPhase::kOpening) return EndOpening();
  // Ranks that shared a generation learn from the page what happened and may say it; the others
  // have nothing to say.
  if (rank_failed && state_.generation > 0) {
    state_.phase = JobPhase::kStopping;
    state_.deadline = now_ + state_.options.survivor_grace;
  } else {
    Terminate();
  }
}

void JobTransition::AskToEnd(int signal) {
  if (!state_.asked_at) state_.asked_at = now_;
  Do(SignalWorkers{signal});
}

void JobTransition::Terminate() {
  state_.phase = JobPhase::kStopping;
  if (AllEnded()) return;
  state_.terminating = true;
  AskToEnd(SIGTERM);
  WaitForGrace();
}

void JobTransition::WaitForGrace() {
  state_.deadline = now_ + state_.options.terminate_grace;
  // A grace of "forever" must not overflow.
  if (*state_.deadline < now_) state_.deadline = TimePoint::max();
}

// As a terminal does to a program that it started itself: what the user wrote for Ctrl-C runs.
void JobTransition::Interrupt() {
  state_.phase = JobPhase::kStopping;
  if (AllEnded()) return;
  const std::string grace = SecondsText(state_.options.terminate_grace);
  Do(NotifyUser{"interrupted: every rank gets SIGINT now, SIGTERM after " + grace +
                    " and SIGKILL " + grace + " later; Ctrl-C again kills them at once",
                /*terminal_only=*/true});
  state_.interrupting = true;
  AskToEnd(SIGINT);
  WaitForGrace();
}

void JobTransition::Kill() {
  state_.phase = JobPhase::kStopping;
  state_.killing = true;
  AskToEnd(SIGKILL);
  state_.deadline = now_ + state_.options.finish_limit;
}

void JobTransition::On(const Interrupted& event) {
  if (state_.phase ==
      JobPhase::kFinishing) {  // only output is left, and somebody does not want to wait for it
    ++state_.interrupts;
    Do(CutChannels{});
    return Because("interrupted while the last output was printed");
  }
  if (event.signal == SIGTERM && MayStopAfterStep()) return On(StopAsked{SIGTERM, kNoGrace});
  ++state_.interrupts;
  if (!state_.failure) {
    JobFailure failure;
    failure.kind = JobFailure::Kind::kInterrupt;
    failure.exit_code = kSignalBase + event.signal;
    failure.signal = event.signal;
    state_.failure = std::move(failure);
  }
  if (state_.phase == JobPhase::kOpening) {
    EndOpening();
    Because("asked to end by signal " + std::to_string(event.signal));
  } else if (state_.interrupts == 1) {
    const bool failed = state_.failure->kind != JobFailure::Kind::kInterrupt;
    if (event.signal == SIGINT && !failed) {
      Interrupt();
    } else if (!state_.terminating) {
      Terminate();
    }
    Because("asked to end by signal " + std::to_string(event.signal));
  } else if (event.signal != SIGINT && !state_.terminating && !state_.killing) {
    Terminate();  // a program around hvdrun passes Ctrl-C on as SIGTERM
    Because("asked to end by signal " + std::to_string(event.signal));
  } else if (!state_.killing) {
    Kill();
    Because("asked a second time to end");
  }
}

// Ranks that commit can leave in good order.
bool JobTransition::MayStopAfterStep() const {
  return IsElastic() && state_.elastic->running && !state_.elastic->stop_asked;
}

void JobTransition::On(const StopAsked& event) {
  if (!MayStopAfterStep()) {
    if (!state_.elastic || !state_.elastic->stop_asked) On(Interrupted{SIGTERM});
    return;
  }
  StopAsked asked = event;
  if (asked.grace == kNoGrace) asked.grace = state_.options.stop_grace;
  state_.elastic->stop_by = now_ + asked.grace;
  Members().OnStopAsked(asked);
}

// Ranks that were asked to stop after a step have had their time.
void JobTransition::EndStop() {
  state_.elastic->stop_by.reset();
  On(Interrupted{SIGTERM});
}

void JobTransition::Review() {
  if (!state_.elastic) return;
  if (IsElastic()) {
    if (std::optional<JobFailure> failure = Members().Review()) {
      std::string reason = failure->reason;
      Fail(std::move(*failure), std::move(reason));
    }
  }
  if (IsElastic()) RunWhenAllBegun();  // those that were still starting may be gone
  FinishWhenAllEnded();
}

void JobTransition::On(const Paused&) {
  if (state_.paused_at || state_.phase >= JobPhase::kFinishing) return;
  state_.paused_at = now_;
  Do(SignalWorkers{SIGSTOP});
  Because("paused");
}

void JobTransition::On(const Resumed&) {
  if (!state_.paused_at) return;
  Duration away = now_ - *std::exchange(state_.paused_at, std::nullopt);
  for (std::optional<TimePoint>* time :
       {&state_.deadline, &state_.timeout_at, &state_.dismissed_by}) {
    if (*time && **time < TimePoint::max() - away) **time += away;
  }
  state_.stages.Shift(away);
  if (state_.init_watch) {
    state_.init_watch->since += away;
    state_.init_watch->next += away;
  }
  Do(SignalWorkers{SIGCONT});
  Because("resumed");
}

void JobTransition::TimeOut() {
  state_.timeout_at.reset();
  if (state_.failure || state_.phase >= JobPhase::kFinishing) return;
  JobFailure failure;
  failure.kind = JobFailure::Kind::kTimeout;
  failure.exit_code = kTimedOut;
  failure.reason = "the job did not end within the " + SecondsText(state_.options.timeout) +
                   " of --timeout; all ranks were ended";
  std::string reason = failure.reason;
  Fail(std::move(failure), std::move(reason));
}

void JobTransition::On(const Tick&) {
  if (state_.timeout_at && now_ >= *state_.timeout_at) TimeOut();
  CutDismissed();
  if (state_.init_watch && !state_.paused_at && now_ >= state_.init_watch->next)
    ReportMissingRanks();
  if (state_.elastic) ExpireHosts();
  if (state_.elastic && state_.elastic->stop_by && now_ >= *state_.elastic->stop_by) EndStop();
  if (state_.phase == JobPhase::kOpening && !state_.elastic) {
    state_.stages.Expire(now_);
    std::string slow = state_.stages.TakeSlow(state_.plan.hosts, now_);
    if (!slow.empty()) Do(NotifyUser{"the job has not started yet; " + slow});
    return LookAtHosts();
  }
  if (!state_.deadline || now_ < *state_.deadline) return;
  state_.deadline.reset();
  if (state_.phase == JobPhase::kStarting) {
    FailStart();
  } else if (state_.phase == JobPhase::kFinishing || state_.killing) {
    Do(CutChannels{});
    Because("an agent does not end what it was told to end");
  } else if (state_.phase == JobPhase::kStopping) {
    if (state_.terminating) {
      Kill();
      Because("workers outlived the grace period");
    } else {
      Terminate();
      Because(state_.interrupting ? "workers outlived SIGINT"
                                  : "workers outlived the failure of a peer");
    }
  }
}

// Hosts that were too slow on their way are given up.
void JobTransition::ExpireHosts() {
  state_.stages.Expire(now_);
  const std::string slow = state_.stages.TakeSlow(state_.plan.hosts, now_);
  if (!slow.empty()) Do(NotifyUser{"waiting for hosts: " + slow});
  for (uint32_t host = 0; host < state_.elastic->hosts.size(); ++host) {
    const bool failed = state_.stages.stage(host) == HostStage::kFailed;
    if (!failed || state_.elastic->hosts[host].gone) continue;
    Do(CutHost{host});
    if (IsElastic()) Members().OnHostGone(host, state_.stages.TroubleOf(host));
  }
}

void JobTransition::FailStart() {
  JobFailure failure;
  failure.kind = JobFailure::Kind::kInternal;
  failure.reason = "the workers were not started within " +
                   SecondsText(state_.options.start_timeout) +
                   "; is a host overloaded? A longer --start-timeout gives it more time";
  std::string reason = failure.reason;
  Fail(std::move(failure), std::move(reason));
}

// Are there no ranks to come?
bool JobTransition::MayFinish() const {
  if (!AllEnded()) return false;
  return !IsElastic() || state_.elastic->any_finished || state_.elastic->stop_asked;
}

void JobTransition::FinishWhenAllEnded() {
  if (state_.phase >= JobPhase::kFinishing || !MayFinish()) return;
  state_.phase = JobPhase::kFinishing;
  state_.deadline.reset();
  if (!EndedByItself(state_)) state_.deadline = now_ + state_.options.finish_limit;
  Do(FinishJob{});
  ReportGoodput();
  if (decision_.reason.empty()) Because("all workers have ended");
  EndWhenAllClosed();
}

void JobTransition::ReportGoodput() {
  if (!state_.elastic) return;
  ElasticState& elastic = *state_.elastic;
  elastic.time.NoteEnd(now_);
  const uint64_t again = elastic.resets + elastic.restarts;
  if (again == 0 || state_.generation == 0)
    return;  // of a script without generations too little is known
  Do(NotifyUser{elastic.time.Text() + "; they began again " + std::to_string(again) +
                (again == 1 ? " time" : " times")});
}

void JobTransition::EndWhenAllClosed() {
  if (state_.phase != JobPhase::kFinishing) return;
  if (std::find(state_.host_open.begin(), state_.host_open.end(), true) != state_.host_open.end())
    return;
  state_.phase = JobPhase::kDone;
  state_.deadline.reset();
  Do(EndRun{});
}

void JobTransition::On(const AgentFinished& event) {
  state_.host_open[event.host] = false;
  EndWhenAllClosed();
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
  if (IsElastic()) return Members().OnHostGone(event.host, event.reason);
  if (state_.dismissed[event.host]) return EndWhenAllClosed();
  if (state_.phase == JobPhase::kOpening) {
    state_.stages.Fail(event.host, event.reason, now_);
    return LookAtHosts();
  }
  bool took_ranks = false;
  for (const Placement& place : state_.plan.ranks) {
    if (place.host != event.host) continue;
    RankRecord& rank = state_.ranks[place.rank];
    took_ranks = took_ranks || rank.phase != RankPhase::kEnded;
    Becomes(rank, RankPhase::kEnded);
    Waits(rank, false);
  }
  JobFailure failure;
  failure.kind = JobFailure::Kind::kHost;
  failure.host = event.host;
  failure.reason = event.reason;
  if (took_ranks && FailedOfIt(event.host)) {
    state_.failure = std::move(failure);
    Because(event.reason);
  } else {
    Fail(std::move(failure), event.reason);
  }
  FinishWhenAllEnded();
  EndWhenAllClosed();
}

}  // namespace

std::optional<TimePoint> NextTick(const JobState& state) {
  const bool opens = state.phase == JobPhase::kOpening && !state.elastic;
  std::optional<TimePoint> next = opens ? state.stages.deadline() : state.deadline;
  if (state.timeout_at && (!next || *state.timeout_at < *next)) next = state.timeout_at;
  if (state.dismissed_by && (!next || *state.dismissed_by < *next)) next = state.dismissed_by;
  if (state.init_watch && (!next || state.init_watch->next < *next)) next = state.init_watch->next;
  if (!state.elastic) return next;
  for (const std::optional<TimePoint>& time :
       {state.stages.NextExpiry(), state.elastic->stop_by, Membership::NextTick(state)}) {
    if (time && (!next || *time < *next)) next = time;
  }
  return next;
}

Decision Step(JobState& state, const JobEvent& event, TimePoint now) {
  JobTransition stepper(state, now);
  std::visit([&](const auto& e) { stepper.On(e); }, event);
  stepper.Review();
  stepper.WatchInit();
  return stepper.Take();
}

std::optional<uint32_t> FirstFailedRank(const JobState& state) {
  std::vector<Departure> departures;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    const RankRecord& rank = state.ranks[r];
    const bool failed =
        !rank.ended_by_us && !rank.forgiven && (rank.lost || (rank.end && !rank.end->ok()));
    if (!failed) continue;
    departures.push_back({r, state.plan.ranks[r].host, rank.departed_ns, rank.is_consequence,
                          rank.end && rank.end->by_signal});
  }
  return FirstCause(departures, state.clocks);
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
    return stopped && state.elastic && state.elastic->stop_asked ? kStoppedExitCode : 0;
  }
  if (!IsOfARank(state.failure->kind)) return state.failure->exit_code;
  std::optional<uint32_t> first = FirstFailedRank(state);
  if (!first) return 1;
  const std::optional<ProcessEnd>& end = state.ranks[*first].end;
  // A rank that left its peers in the middle of a generation failed the job, even with exit code 0.
  return end && !end->ok() ? end->exit_code() : 1;
}

}  // namespace hvd
