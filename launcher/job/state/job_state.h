// The values of the state machine (job.h): the state of a job, the events that happen to it, and
// the actions that follow.
#ifndef HVD_LAUNCHER_JOB_STATE_JOB_STATE_H_
#define HVD_LAUNCHER_JOB_STATE_JOB_STATE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/job/host_records/final_plan.h"
#include "launcher/job/host_records/host_clock.h"
#include "launcher/job/host_records/host_stages.h"
#include "launcher/job/host_records/silent_routes.h"
#include "launcher/job/state/elastic_state.h"
#include "launcher/job/state/rank_record.h"
#include "launcher/job/state/worker_kinds.h"
#include "launcher/overlay/relay/relay_plan.h"
#include "launcher/stall/verdict/script_verdict.h"
#include "launcher/stall/verdict/verdict.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/clock.h"
#include "runtime/base/exit_status.h"
#include "runtime/net/trouble.h"

namespace hvd {

struct JobOptions {
  // From SIGINT to SIGTERM, and from SIGTERM to SIGKILL.
  Duration terminate_grace = std::chrono::seconds(3);
  // How long ranks that lost a peer may continue on their own, so that they can report what
  // happened.
  Duration survivor_grace = std::chrono::seconds(1);
  StageLimits stages = StageLimits::Default();
  bool prove_addresses = false;  // between the hosts, before anything is started
  bool relay = true;             // where no address works between two hosts
  Duration start_timeout = std::chrono::seconds(30);  // until all workers are started
  // How long agents may take to end everything after SIGKILL; then their channels are cut.
  Duration finish_limit = std::chrono::seconds(3);
  Duration timeout{};         // for the whole job; 0: none
  std::string launcher = {};  // that starts the ranks ("mpirun"); empty: the agents do
  // How long the ranks of an elastic job that is asked to end may take to reach a commit.
  Duration stop_grace = std::chrono::seconds(25);
  // How long some ranks may wait in hvd.init() until the missing ranks are named to the user; they
  // are named again at growing intervals.
  Duration init_watch = std::chrono::seconds(10);
  // In a job of fixed size: how long, after a rank is lost, its exit code may take (the kernel
  // frees its memory first), and with code 0 the others may stay in their world.
  Duration leave_limit = std::chrono::seconds(10);
};

enum class JobPhase { kOpening, kStarting, kRunning, kStopping, kFinishing, kDone };
// Why the job failed.
struct JobFailure {
  // kEnding: a rank ended the generation for a reason of its own. kStall: a collective takes too
  // long, or can never end. kRoute: two hosts receive nothing from each other, while hvdrun
  // receives from both. kLauncher: another launcher, in whose places the ranks are.
  enum class Kind {
    kRank,
    kCommand,
    kHost,
    kHosts,
    kInterrupt,
    kTimeout,
    kInternal,
    kEnding,
    kRoute,
    kStall,
    kLauncher
  };
  Kind kind = Kind::kRank;
  int exit_code = 1;
  uint32_t rank = 0;  // kRank, kCommand; kEnding, kRoute: the rank that reported it
  uint32_t peer = 0;  // kRoute: the rank from which it receives nothing
  uint32_t host = 0;  // kHost; kHosts: the first of them
  // kHosts: the report on all hosts; of kinds other than kRank, kInterrupt and kTimeout: a
  // sentence.
  std::string reason;
  int signal = 0;   // kInterrupt
  Verdict verdict;  // kStall
};

// The other launcher has ended.
struct LauncherEnded {
  std::string reason;  // "ended with exit code 1"
  std::string output;  // the first paragraph of what it printed; may be empty
  int exit_code = 0;
  // A signal ended it: the failure of a rank would have given an exit code.
  bool by_signal = false;
};

// The places that another launcher gives to the ranks.
struct LauncherPlaces {
  bool asked = false;                          // it was started
  std::vector<std::optional<uint32_t>> hosts;  // by rank: where its place is
  size_t count = 0;                            // of those that are known
  std::optional<LauncherEnded> end;
  std::optional<TimePoint> end_by;  // then it is the cause, if nothing else was heard of
};

struct JobState {
  // `named`: the hosts of a plan that is not final yet. `the_policy`: none: the size of the job is
  // fixed. `seed`: of random waits.
  JobState(Plan the_plan, JobOptions the_options, std::vector<HostSlots> named = {},
           const std::optional<JobPolicy>& the_policy = {}, uint64_t seed = 0)
      : plan(std::move(the_plan)),
        named_hosts(std::move(named)),
        options(the_options),
        ranks(plan.size()),
        stages(plan.hosts.size(), options.stages),
        host_open(plan.hosts.size(), true),
        dismissed(plan.hosts.size()),
        facts(plan.hosts.size()),
        clocks(plan.hosts.size()),
        elastic(the_policy.value_or(FixedPolicy(plan.size())), seed) {
    for (uint32_t worker = 0; worker < ranks.size(); ++worker) ranks[worker].rank = worker;
    Recount();
  }

  Plan plan;                           // the places of all workers, by their numbers
  std::vector<HostSlots> named_hosts;  // by host; empty: the plan is final
  JobOptions options;
  JobPhase phase = JobPhase::kOpening;
  std::vector<RankRecord> ranks;
  // How many ranks are in each state, kept up to date: a job of many ranks does not look at all of
  // them at every event.
  struct Counts {
    size_t begun = 0;    // no longer starting
    size_t ended = 0;    // kEnded
    size_t waiting = 0;  // kInInit
    size_t lost = 0;     // with a loss
    bool operator==(const Counts&) const = default;
  } counts;
  WorkerKinds kinds;  // the same in more detail, of those that have not ended
  HostStages stages;
  std::vector<BlockedRoute> blocked;      // routes between hosts on which no address works
  std::vector<bool> host_open;            // its agent was not reported gone
  std::vector<bool> dismissed;            // the job does not need the host
  std::vector<AgentFacts> facts;          // by host, of the agents that are connected
  std::vector<HostClock> clocks;          // by host
  std::optional<TimePoint> dismissed_by;  // until then those must be gone
  uint64_t generation = 0;                // the last one begun
  std::optional<JobFailure> failure;
  // Why a rank, or hvdrun, ended the last generation; no failure until a rank fails of it.
  std::optional<JobFailure> ending;
  std::optional<StallExplained> stall;  // the last verdict about the generation
  std::set<uint32_t> stopped;           // workers that a signal had stopped when it broke
  ElasticState elastic;                 // which hosts and ranks the job may have
  LauncherPlaces places;
  int interrupts = 0;
  bool interrupting = false;            // SIGINT was sent
  bool terminating = false;             // SIGTERM was sent
  bool killing = false;                 // SIGKILL was sent
  std::optional<TimePoint> asked_at;    // when the first of them was sent
  std::optional<TimePoint> deadline;    // of the phase
  std::optional<TimePoint> timeout_at;  // of the whole job
  std::optional<TimePoint> leave_by;    // JobOptions::leave_limit
  std::optional<TimePoint> paused_at;   // since when hvdrun and its workers are stopped

  // Some ranks wait in hvd.init() and others have not called it.
  struct InitWatch {
    TimePoint since, next;  // when the first began to wait; when to name the others next
    int times = 0;          // how often they were named
  };
  std::optional<InitWatch> init_watch;

  // The workers change by these functions, which keep `counts`, `kinds` and the seats of the hosts
  // up to date. A new one, whose process is to be started on this seat of the host:
  uint32_t AddWorker(uint32_t host, uint32_t seat);
  void Move(uint32_t worker, WorkerState to);
  // It no longer waits for a generation, because it will not be in one.
  void StopWaiting(uint32_t worker);
  // It is no longer in a generation.
  void LeaveWorld(uint32_t worker);
  // It is gone from its generation without a goodbye.
  void Lose(uint32_t worker, Loss loss);
  // Changes what a WorkerKind says, but for the state.
  void Change(uint32_t worker, auto change) {
    kinds.Remove(ranks[worker]);
    change(ranks[worker]);
    kinds.Add(ranks[worker]);
  }
  // The hosts or their slots have changed: which workers have a slot.
  void NoteSlots();
  // Everything that is derived from the rest of the state.
  void Recount();
  // The worker that has this rank in the present generation.
  std::optional<uint32_t> WorkerOf(uint32_t rank) const;
  // The next three: of the present generation; where ranks keep their places, of the job, also
  // before its first generation. The place of a rank; null if there is no such rank.
  const Placement* PlaceOf(uint32_t rank) const;
  uint32_t size() const;
  Plan GenerationPlan() const;

  const JobPolicy& policy() const { return elastic.policy; }
  // It gets ready or runs; later it only ends.
  bool at_work() const { return phase <= JobPhase::kRunning && !failure; }
  // Ranks have been asked to end.
  bool asked() const { return interrupting || terminating || killing; }
};

// ---- events

struct HostTroubled {
  uint32_t host = 0;
  HostTrouble trouble;
};
struct HostEntered {
  uint32_t host = 0;
  HostStage stage = HostStage::kResolve;
};
// Its agent is connected and has reported what its host has.
struct AgentIsReady {
  uint32_t host = 0;
  AgentFacts facts;
};
// It has probed the hosts that it will connect to. `trouble`, if not empty: why it could not.
struct HostProven {
  uint32_t host = 0;
  std::string trouble;
  std::vector<BlockedRoute> blocked;  // the routes to hosts that it does not reach
};
// The route through the driver from this host to another one.
struct RouteMeasured {
  uint32_t host = 0, to = 0;
  RelayMeasured speed;
};
// Its agent was asked for its time.
struct ClockRead {
  uint32_t host = 0;
  ClockReading reading;
};
struct AgentLost {
  uint32_t host = 0;
  std::string reason;
};
struct AgentFinished {
  uint32_t host = 0;
};
// From the agent of a host on which another launcher starts processes.
struct PlaceEvent {
  using Message = std::variant<PlaceTaken, PlacesRefused>;
  uint32_t host = 0;
  Message message;
};
struct Interrupted {
  int signal = 0;
};
// A rank ends the generation that it is in.
struct GenerationEnding {
  uint64_t generation = 0;
  RankEnding by;
};
// Of an elastic job: the hosts that its source lists now, or why it gave no answer; the previous
// answer then stays in force.
struct HostsListed {
  std::vector<HostSlots> hosts;
  std::string trouble;
  bool hopeless = false;
};
// How long a rank of the host has waited in a collective of this generation; zero: none waits long
// any more.
struct HostIdle {
  uint32_t host = 0;
  uint64_t generation = 0;
  Duration idle{};
};
// The host's ranks have stopped at a commit or will at their next one.
struct CommitsHeldBy {
  uint32_t host = 0;
  CommitsHeld held;
};
// The ranks are to leave after their current step, within `grace`; 0: within the limit of the job's
// options.
struct StopAsked {
  int signal = 0;
  Duration grace{};
  std::optional<uint32_t> host = {};  // whose agent was asked; none: hvdrun was
};
// hvdrun has taken over the job from one that was killed: all workers were started then.
struct Adopted {
  uint64_t generation = 0;  // the last one begun, which all ranks have joined; 0: none was
  TimePoint begun{};        // when the job was
  bool incomplete = false;  // an agent did not get its part of the job
  std::optional<JobFailure> failure = {};  // why it was ending
};
struct Begun {};    // the channels are being opened
struct Tick {};     // NextTick() has come
struct Paused {};   // hvdrun is about to be stopped (SIGTSTP)
struct Resumed {};  // it goes on; the time between does not count

// The agents' messages are events as they are.
using JobEvent = std::variant<Begun, HostEntered, HostTroubled, AgentIsReady, HostProven, AgentLost,
                              AgentFinished, Interrupted, Tick, Paused, Resumed, WorkerStarted,
                              WorkerNotStarted, RankJoined, RankLeft, RankLost, WorkerExited,
                              RouteMeasured, ClockRead, GenerationEnding, RankStopped, SilentRoute,
                              HostsListed, CommitsHeldBy, StopAsked, MemoryReply, StallExplained,
                              ScriptStall, PlaceEvent, LauncherEnded, HostIdle, Adopted>;

// ---- actions: messages to every agent that is still connected, and others

struct UsePlan {
};  // all agents are connected, and the state's plan is final; or its ranks are placed
struct DismissHost {  // its agent may go
  uint32_t host = 0;
};
struct ProveAddresses {};  // have the agents of all hosts that have a rank probe each other
struct RelayRoutes {       // let the relay carry these, and measure it
  std::vector<std::pair<uint32_t, uint32_t>> routes;  // from, to
};
struct StartLauncher {};  // all hosts are ready: another launcher starts a process for each rank
struct CutHost {          // give up a host that did not get ready
  uint32_t host = 0;
};
struct CutChannels {};  // kill the agents that do not end
struct EndRun {};       // everything is over: print the report, return the code
struct NotifyUser {     // a line for the screen, whether --verbose or not
  std::string sentence;
  bool terminal_only = false;  // for a person at the terminal, not for a log
};

struct OpenHost {  // the next number; a host was added to the state's plan
  uint32_t host = 0;
  HostSlots listing;
};
// Workers that were added to the state; of a job of fixed size all, once all hosts are ready, where
// its plan says.
struct StartMembers {
  std::vector<Member> members;
  uint32_t size = 0;
  bool homogeneous = true;
  uint32_t restarts = 0;
};
struct BeginWorld {
  uint64_t number = 0;
  Generation generation;
};

using JobAction = std::variant<UsePlan, DismissHost, ProveAddresses, BreakGeneration, SignalWorkers,
                               FinishJob, CutHost, CutChannels, EndRun, NotifyUser, RelayRoutes,
                               OpenHost, StartMembers, BeginWorld, SignalWorker, DismissWorker,
                               HoldCommits, ActAtCommit, AskMemory, StartLauncher>;

struct Decision {
  std::vector<JobAction> actions;
  std::string reason;   // one sentence, for the log; empty when nothing was decided
  bool detail = false;  // a step of one host: for --verbose, not for the story of the job
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_STATE_JOB_STATE_H_
