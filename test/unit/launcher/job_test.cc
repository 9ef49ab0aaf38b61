// The life of a job, told as scripts: the events, and the actions by which the machine answers.
#include "launcher/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <sstream>

#include "launcher/job/report/job_result.h"
#include "launcher/job/report/report.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Text(const JobAction& action) {
  struct Namer {
    std::string operator()(const UsePlan&) { return "plan"; }
    std::string operator()(const DismissHost& a) { return "dismiss " + std::to_string(a.host); }
    std::string operator()(const ProveAddresses&) { return "prove"; }
    std::string operator()(const CutHost& a) { return "cut " + std::to_string(a.host); }
    std::string operator()(const BreakGeneration& a) {
      return "break " + std::to_string(a.generation);
    }
    std::string operator()(const SignalWorkers& a) { return "signal " + std::to_string(a.signal); }
    std::string operator()(const FinishJob&) { return "finish"; }
    std::string operator()(const CutChannels&) { return "cut"; }
    std::string operator()(const EndRun&) { return "end"; }
    std::string operator()(const NotifyUser& a) { return a.sentence; }
    std::string operator()(const RelayRoutes& a) {
      return "relay " + std::to_string(a.routes.size());
    }
    std::string operator()(const OpenHost& a) { return "open " + std::to_string(a.host); }
    std::string operator()(const StartMembers&) { return "start"; }
    std::string operator()(const BeginWorld& a) { return "begin " + std::to_string(a.number); }
    std::string operator()(const SignalWorker& a) {
      return "signal " + std::to_string(a.signal) + " to " + std::to_string(a.rank);
    }
    std::string operator()(const DismissWorker& a) {
      return "dismiss worker " + std::to_string(a.rank);
    }
    std::string operator()(const HoldCommits&) { return "hold"; }
    std::string operator()(const ActAtCommit& a) { return "act at " + std::to_string(a.commit); }
    std::string operator()(const StartLauncher&) { return "launch"; }
    std::string operator()(const AskMemory& a) { return "ask memory " + std::to_string(a.rank); }
  };
  return std::visit(Namer{}, action);
}

// A job of `size` ranks on one host (or one rank per host), with a clock moved by hand.
class Script {
 public:
  explicit Script(uint32_t size, uint32_t hosts = 1) : state(MakeState(size, hosts)) {}

  static JobState MakeState(uint32_t size, uint32_t hosts) {
    std::vector<HostSlots> list;
    for (uint32_t h = 0; h < hosts; ++h) list.push_back({"h" + std::to_string(h), size / hosts});
    JobState state(*MakePlan(list, size), {});
    for (HostClock& clock : state.clocks) clock = HostClock::Ours();
    return state;
  }

  // The actions, joined by ", ".
  std::string On(const JobEvent& event) {
    Decision decision = Step(state, event, clock.Now());
    std::ostringstream text;
    for (const JobAction& action : decision.actions)
      text << (text.tellp() > 0 ? ", " : "") << Text(action);
    if (!decision.actions.empty()) reason = decision.reason;
    for (const JobAction& action : decision.actions) {
      if (const auto* broken = std::get_if<BreakGeneration>(&action)) told = broken->reason;
    }
    return text.str();
  }
  std::string Exit(uint32_t rank, int code, int64_t noticed = 0) {
    return On(WorkerExited{rank, Pid(rank), {false, code}, noticed ? noticed : Now(), "words"});
  }
  std::string Killed(uint32_t rank, int signal, int64_t noticed = 0) {
    return On(WorkerExited{rank, Pid(rank), {true, signal}, noticed ? noticed : Now(), ""});
  }
  std::string Lost(uint32_t rank, uint64_t generation) {
    return On(RankLost{rank, Pid(rank), generation, Now(), "it died"});
  }
  std::string Left(uint32_t rank, uint64_t generation) {
    return On(RankLeft{rank, generation, Now()});
  }
  // A stamp of a host whose clock is ours, later than all before.
  int64_t Now() { return clock.Now().time_since_epoch().count() + ++time; }
  void HostsGetReady() {
    for (uint32_t h = 0; h < state.plan.hosts.size(); ++h) On(AgentIsReady{h});
  }
  void StartAll() {
    HostsGetReady();
    for (uint32_t r = 0; r < state.plan.size(); ++r) On(WorkerStarted{r, Pid(r)});
  }
  std::string JoinAll() {
    std::string last;
    for (uint32_t r = 0; r < state.plan.size(); ++r) last = On(RankJoined{r});
    return last;
  }
  std::string After(Duration d) {
    clock.Advance(d);
    return On(Tick{});
  }
  static int32_t Pid(uint32_t rank) { return static_cast<int32_t>(100 + rank); }

  ManualClock clock;
  JobState state;
  int64_t time = 0;
  std::string reason, told;
};

TEST(Job, AllEndWell) {
  Script job(2);
  job.On(Begun{});
  job.StartAll();
  EXPECT_EQ(job.state.phase, JobPhase::kRunning);
  EXPECT_FALSE(job.state.deadline) << "nothing to wait for but the workers";
  EXPECT_EQ(job.Exit(0, 0), "");
  EXPECT_EQ(job.Exit(1, 0), "finish");
  EXPECT_EQ(job.On(AgentFinished{0}), "end");
  EXPECT_EQ(ExitCode(job.state), 0);
}

TEST(Job, WorkersStartOnceAllHostsAreReady) {
  Script job(2, 2);
  job.On(Begun{});
  EXPECT_EQ(job.On(HostEntered{0, HostStage::kConnect}), "");
  EXPECT_EQ(job.On(AgentIsReady{1}), "");
  EXPECT_EQ(job.On(AgentIsReady{0}), "start");
  EXPECT_EQ(job.state.phase, JobPhase::kStarting);
}

TEST(Job, AStageThatIsEnteredAgainIsSaidOnce) {
  Script job(1);
  job.On(Begun{});
  const auto reason = [&](HostStage stage) {
    return Step(job.state, HostEntered{0, stage}, job.clock.Now()).reason;
  };
  EXPECT_THAT(reason(HostStage::kConnect), testing::HasSubstr("host h0: "));
  EXPECT_EQ(reason(HostStage::kConnect), "");
}

// Two ranks in places that mpirun gives them, on hosts 0 and 1.
Script JobInPlaces() {
  Script job(2, 2);
  job.state.options.launcher = "mpirun";
  job.On(Begun{});
  job.On(AgentIsReady{1});
  EXPECT_EQ(job.On(AgentIsReady{0}), "launch");
  return job;
}

TEST(Job, WorkersStartOnceAllPlacesAreTaken) {
  Script job = JobInPlaces();
  EXPECT_EQ(job.On(PlaceEvent{1, PlaceTaken{1, 2}}), "");
  EXPECT_EQ(job.state.phase, JobPhase::kOpening);
  EXPECT_EQ(job.On(PlaceEvent{0, PlaceTaken{0, 2}}), "start");
  for (uint32_t r = 0; r < 2; ++r) job.On(WorkerStarted{r, Script::Pid(r)});
  EXPECT_EQ(job.state.phase, JobPhase::kRunning);
  EXPECT_FALSE(NextTick(job.state)) << "nothing to wait for but the workers";
  job.Exit(0, 0);
  EXPECT_EQ(job.Exit(1, 0), "finish");
  EXPECT_EQ(job.On(LauncherEnded{"ended with exit code 0", "", 0}), "");
  job.On(AgentFinished{0});
  EXPECT_EQ(job.On(AgentFinished{1}), "end");
  EXPECT_EQ(ExitCode(job.state), 0);
}

TEST(Job, ALauncherThatIsSilentIsEndedAndNamed) {
  Script job = JobInPlaces();
  job.On(PlaceEvent{1, PlaceTaken{1, 2}});
  ASSERT_TRUE(NextTick(job.state));
  EXPECT_EQ(job.After(job.state.options.start_timeout), "finish");
  EXPECT_EQ(Report(job.state),
            "hvdrun: mpirun has started 1 of 2 ranks (1) within 30 s, and was ended; try again, or "
            "a longer --start-timeout.\n");
  EXPECT_EQ(ExitCode(job.state), 1);
}

TEST(Job, ALauncherThatEndsBeforeTheRanksEndsTheJob) {
  Script job = JobInPlaces();
  EXPECT_EQ(job.On(LauncherEnded{"ended with exit code 17", "no way to b", 17}), "finish");
  EXPECT_EQ(Report(job.state),
            "hvdrun: mpirun ended with exit code 17 when it had started none of 2 ranks: no way to "
            "b.\n");
  EXPECT_EQ(ExitCode(job.state), 17);
}

// Four ranks of which `host_of_rank` says where mpirun has put them; two on each host were planned.
// The actions of the last one.
std::string Placed(Script& job, const std::vector<uint32_t>& host_of_rank) {
  job.state.options.launcher = "mpirun";
  job.On(Begun{});
  job.HostsGetReady();
  std::string last;
  for (uint32_t r = 0; r < host_of_rank.size(); ++r)
    last = job.On(PlaceEvent{host_of_rank[r], PlaceTaken{r, 4}});
  return last;
}

TEST(Job, RanksAreWhereTheirLauncherHasPutThem) {
  Script job(4, 2);
  EXPECT_EQ(Placed(job, {0, 1, 0, 1}), "plan, start");
  EXPECT_EQ(job.state.plan.ranks[2], (Placement{2, 0, 1, 2, 0, 2}));
  EXPECT_EQ(job.state.plan.ranks[3], (Placement{3, 1, 1, 2, 1, 2}));
  job = Script(4, 2);
  EXPECT_EQ(Placed(job, {0, 0, 0, 1}), "plan, start") << "not as many as were planned";
  EXPECT_EQ(job.state.plan.ranks[3], (Placement{3, 1, 0, 1, 1, 2}));
  job = Script(4, 2);
  EXPECT_EQ(Placed(job, {0, 0, 1, 1}), "start") << "as planned";
}

TEST(Job, PlacesThatLeaveAHostOutOrTurnTheHostsAroundEndTheJob) {
  Script job(4, 2);
  EXPECT_EQ(Placed(job, {0, 0, 0, 0}), "finish");
  EXPECT_EQ(Report(job.state),
            "hvdrun: mpirun started no rank on host h1, on which this job has 2; leave that host "
            "out of -H, or hosts and mappings out of the arguments for it.\n");
  job = Script(4, 2);
  EXPECT_EQ(Placed(job, {1, 1, 0, 0}), "finish");
  EXPECT_EQ(Report(job.state),
            "hvdrun: mpirun started its first ranks on the hosts in another order than this job "
            "has them, with h1 before h0; name the hosts in that order with -H, or leave rankfiles "
            "and hosts out of the arguments for it.\n");
}

TEST(Job, APlaceInAnotherWorldEndsTheJob) {
  Script job = JobInPlaces();
  EXPECT_EQ(job.On(PlaceEvent{1, PlaceTaken{1, 3}}), "finish");
  job = JobInPlaces();
  job.On(PlaceEvent{1, PlaceTaken{1, 2}});
  EXPECT_EQ(job.On(PlaceEvent{1, PlaceTaken{1, 2}}), "finish");
  job = JobInPlaces();
  EXPECT_EQ(job.On(PlaceEvent{1, PlacesRefused{"its address is taken"}}), "finish");
  EXPECT_EQ(Report(job.state),
            "hvdrun: host h1 cannot take ranks of mpirun: its address is taken.\n");
}

TEST(Job, ALauncherThatIsEndedIsTheCauseUnlessARankFailed) {
  auto running = [] {
    Script job = JobInPlaces();
    for (uint32_t r = 0; r < 2; ++r) job.On(PlaceEvent{r, PlaceTaken{r, 2}});
    for (uint32_t r = 0; r < 2; ++r) job.On(WorkerStarted{r, Script::Pid(r)});
    return job;
  };
  Script job = running();
  EXPECT_EQ(job.On(LauncherEnded{"was ended by signal 9 (SIGKILL)", "", 137, true}), "signal 15");
  EXPECT_EQ(ExitCode(job.state), 137);
  EXPECT_EQ(Report(job.state),
            "hvdrun: mpirun was ended by signal 9 (SIGKILL) while the ranks ran.\n");

  job = running();
  EXPECT_EQ(job.On(LauncherEnded{"ended with exit code 1", "", 1}), "");
  EXPECT_EQ(job.After(seconds(1)), "");
  EXPECT_EQ(job.After(seconds(1)), "signal 15");
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kLauncher);

  job = running();
  job.On(LauncherEnded{"ended with exit code 137", "", 137});
  EXPECT_EQ(job.Killed(1, SIGKILL), "signal 15") << "that is why mpirun ended";
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kRank);

  job = running();
  EXPECT_EQ(job.Exit(1, 195), "signal 15");
  EXPECT_EQ(job.On(LauncherEnded{"was ended by signal 9 (SIGKILL)", "", 137, true}), "");
  EXPECT_EQ(ExitCode(job.state), 137) << "the rank had lost mpirun";
}

TEST(Job, HostsProveTheirAddressesOnceAllAreThere) {
  Script job(2, 2);
  job.state.options.prove_addresses = true;
  job.On(Begun{});
  EXPECT_EQ(job.On(AgentIsReady{0}), "");
  EXPECT_EQ(job.On(AgentIsReady{1}), "prove");
  EXPECT_EQ(job.On(HostProven{1}), "");
  EXPECT_EQ(job.On(HostProven{0}), "start");
}

RelayMeasured Speed(uint32_t to, uint64_t bytes) {
  return {to, bytes, 1'000'000'000, 2'000'000, ""};
}

TEST(Job, HostsThatDoNotReachEachOtherAreRelayedAndMeasuredBeforeWorkersStart) {
  Script job(3, 3);
  job.state.options.prove_addresses = true;
  job.On(Begun{});
  for (uint32_t host = 0; host < 3; ++host) job.On(AgentIsReady{host});
  EXPECT_EQ(job.On(HostProven{0, "", {{0, 1, "it cannot reach h1 (x)", {}, false}}}), "");
  EXPECT_EQ(job.On(HostProven{2}), "");
  EXPECT_EQ(job.On(HostProven{1, "", {{1, 0, "it cannot reach h0 (y)", {}, false}}}), "relay 2");
  EXPECT_EQ(job.On(RouteMeasured{0, 1, Speed(1, 30'000'000)}), "");
  std::string said = job.On(RouteMeasured{1, 0, Speed(0, 20'000'000)});
  EXPECT_TRUE(said.starts_with("hosts h0 and h1 do not reach each other. ")) << said;
  EXPECT_NE(said.find("at 50 MB/s in all (measured; 2.0 ms there and back)"), said.npos) << said;
  EXPECT_TRUE(said.ends_with(", start")) << said;
}

TEST(Job, AWayThatIsNotRelayedEndsTheJobWithAReasonForEachHost) {
  Script job(2, 2);
  job.state.options.prove_addresses = true;
  job.state.options.relay = false;
  job.On(Begun{});
  for (uint32_t host = 0; host < 2; ++host) job.On(AgentIsReady{host});
  job.On(HostProven{0, "", {{0, 1, "it cannot reach h1 (x)", {}, false}}});
  EXPECT_EQ(job.On(HostProven{1}), "finish, cut 0");
  EXPECT_NE(job.state.failure->reason.find("h0: looking for an address"), std::string::npos);
  EXPECT_NE(job.state.failure->reason.find("--relay never"), std::string::npos);
}

TEST(Job, ARelayThatCarriesNothingEndsTheJob) {
  Script job(2, 2);
  job.state.options.prove_addresses = true;
  job.On(Begun{});
  for (uint32_t host = 0; host < 2; ++host) job.On(AgentIsReady{host});
  job.On(HostProven{0, "", {{0, 1, "why", {}, false}}});
  EXPECT_EQ(job.On(HostProven{1}), "relay 1");
  EXPECT_EQ(job.On(RouteMeasured{0, 1, {1, 0, 0, 0, "nothing came through it in 10 s"}}),
            "finish, cut 0");
  EXPECT_NE(job.state.failure->reason.find("nothing came through it"), std::string::npos);
}

TEST(Job, AHostThatCannotLookForOthersFailsWhateverTheOthersDoNotReach) {
  Script job(2, 2);
  job.state.options.prove_addresses = true;
  job.On(Begun{});
  for (uint32_t host = 0; host < 2; ++host) job.On(AgentIsReady{host});
  EXPECT_EQ(job.On(HostProven{0, "there is no network interface 'ib7'", {}}), "");
  EXPECT_EQ(job.On(HostProven{1, "", {{1, 0, "it has not said where it listens", {}, false}}}),
            "finish, cut 0");
  EXPECT_NE(job.state.failure->reason.find("ib7"), std::string::npos);
}

// A job whose plan is final once the agents are there: `np` ranks on hosts of which nothing is
// known.
JobState Draft(uint32_t np, uint32_t hosts) {
  std::vector<HostSlots> named;
  for (uint32_t h = 0; h < hosts; ++h) {
    named.push_back(
        {.host = "h" + std::to_string(h), .slots = 1, .remote = true, .slots_known = false});
  }
  return JobState(DraftPlan(named, np)->plan, {}, named);
}

TEST(Job, ThePlanIsFinalOnceAllAgentsAreThere) {
  Script job(1);
  job.state = Draft(4, 3);
  job.state.options.prove_addresses = true;
  job.On(Begun{});
  EXPECT_EQ(job.On(AgentIsReady{0, {"x", 2}}), "");
  EXPECT_EQ(job.On(AgentIsReady{2, {"x", 2}}), "");
  EXPECT_EQ(job.On(AgentIsReady{1, {"y", 2}}),
            "plan, h2 is the host h0 under another name: one host with 2 slots, dismiss 2, prove");
  EXPECT_EQ(job.On(AgentIsReady{1, {"z", 9}}), "") << "said once";
  EXPECT_EQ(job.On(AgentLost{2, "the connection ended"}), "") << "nobody needs it";
  EXPECT_EQ(job.On(HostProven{0}), "");
  EXPECT_EQ(job.On(HostProven{1}), "start");
  for (uint32_t r = 0; r < 4; ++r) job.On(WorkerStarted{r, Script::Pid(r)});
  for (uint32_t r = 0; r < 3; ++r) job.Exit(r, 0);
  EXPECT_EQ(job.Exit(3, 0), "finish");
  EXPECT_EQ(job.On(AgentFinished{0}), "");
  EXPECT_EQ(job.On(AgentFinished{1}), "end");
}

TEST(Job, ADismissedHostThatStaysIsCut) {
  Script job(1);
  job.state = Draft(2, 2);
  job.On(Begun{});
  job.On(AgentIsReady{1, {"y", 1}});
  EXPECT_THAT(job.On(AgentIsReady{0, {"x", 2}}), testing::EndsWith("dismiss 1, start"));
  for (uint32_t r = 0; r < 2; ++r) job.On(WorkerStarted{r, Script::Pid(r)});
  ASSERT_TRUE(NextTick(job.state));
  EXPECT_EQ(job.After(job.state.options.finish_limit - milliseconds(1)), "");
  EXPECT_EQ(job.After(milliseconds(1)), "cut 1");
  job.Exit(0, 0);
  EXPECT_EQ(job.Exit(1, 0), "finish");
  EXPECT_EQ(job.On(AgentFinished{0}), "") << "nothing is left behind there, either";
  EXPECT_EQ(job.On(AgentLost{1, "killed"}), "end");
  EXPECT_EQ(ExitCode(job.state), 0);
}

TEST(Job, TooFewSlotsEndItBeforeAnythingStarts) {
  Script job(1);
  job.state = Draft(4, 2);
  job.On(Begun{});
  job.On(AgentIsReady{0, {"x", 2}});
  EXPECT_EQ(job.On(AgentIsReady{1, {"y", 1}}), "finish");
  EXPECT_EQ(ExitCode(job.state), 2);
  EXPECT_EQ(job.state.failure->reason,
            "4 processes were asked for, but the hosts have 3 slots; try -np 3 or list more slots "
            "(-H host:N, --slots-per-host N). Nothing was started.\n");
}

TEST(Job, ACommandThatSomeHostLacksEndsItBeforeAnythingStarts) {
  Script job(2, 2);
  AgentFacts here, there;
  here.command = {.program = "python", .directory = "/", .found = "/bin/python"};
  there.command = {.program = "python", .directory = "/", .error = ENOENT};
  job.On(Begun{});
  job.On(AgentIsReady{0, here});
  EXPECT_EQ(job.On(AgentIsReady{1, there}), "finish");
  EXPECT_EQ(ExitCode(job.state), 127);
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kCommand);
}

TEST(Job, OneFailedHostIsReportedTogetherWithAllOthers) {
  Script job(4, 4);
  job.On(Begun{});
  job.On(AgentIsReady{0});
  job.On(HostEntered{1, HostStage::kConnect});
  job.On(HostEntered{2, HostStage::kLogin});
  job.On(HostEntered{3, HostStage::kConnect});
  EXPECT_EQ(job.On(AgentLost{1, "the connection was refused"}), "") << "how do the others fare?";
  EXPECT_EQ(job.On(AgentLost{3, "the connection was refused"}), "");
  EXPECT_EQ(job.After(milliseconds(2999)), "");
  EXPECT_EQ(job.After(milliseconds(1)), "finish, cut 2") << "it had its time";
  EXPECT_EQ(job.On(AgentFinished{0}), "");
  EXPECT_EQ(job.On(AgentLost{2, "cut"}), "end");
  EXPECT_EQ(job.state.failure->reason,
            "2 of 4 hosts cannot be used, so nothing was started.\n"
            "  h1, h3: connecting: the connection was refused\n"
            "  h0: ready\n"
            "  h2: still logging in\n");
  EXPECT_EQ(ExitCode(job.state), 1);
}

TEST(Job, AHostThatStaysInOneStageIsNamedAndThenGivenUp) {
  Script job(2, 2);
  job.On(Begun{});
  job.On(AgentIsReady{0});
  job.On(HostEntered{1, HostStage::kLogin});
  EXPECT_EQ(job.After(seconds(9)), "");
  EXPECT_EQ(job.After(seconds(1)), "the job has not started yet; h1: logging in for 10 s");
  EXPECT_EQ(job.After(seconds(9)), "");
  EXPECT_EQ(job.After(seconds(1)), "finish, cut 1") << "the limit of a login";
  EXPECT_EQ(job.On(AgentLost{1, "cut"}), "");
  EXPECT_EQ(job.On(AgentFinished{0}), "end");
  EXPECT_NE(job.state.failure->reason.find("h1: logging in: it took longer than 20 s"),
            std::string::npos);
}

TEST(Job, AnInterruptWhileHostsGetReadyEndsWhatIsThere) {
  Script job(2, 2);
  job.On(Begun{});
  job.On(AgentIsReady{0});
  EXPECT_EQ(job.On(Interrupted{SIGINT}), "finish, cut 1");
  EXPECT_EQ(job.On(AgentIsReady{1}), "") << "too late";
  EXPECT_EQ(job.After(seconds(3)), "cut") << "an agent that does not end";
  job.On(AgentLost{0, "cut"});
  EXPECT_EQ(job.On(AgentLost{1, "cut"}), "end");
  EXPECT_EQ(ExitCode(job.state), 130);
}

TEST(Job, AnGenerationBeginsWhenEveryRankAsked) {
  Script job(3);
  job.StartAll();
  EXPECT_EQ(job.On(RankJoined{0}), "");
  EXPECT_EQ(job.On(RankJoined{2}), "");
  EXPECT_EQ(job.On(RankJoined{1}), "begin 1");
  job.Left(0, 1), job.Left(1, 1), job.Left(2, 1);
  EXPECT_EQ(job.JoinAll(), "begin 2");
}

TEST(Job, WhoAsksAgainWhileOthersAreStillInWaitsForThem) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.Left(0, 1);
  EXPECT_EQ(job.On(RankJoined{0}), "");
  job.Left(1, 1);
  EXPECT_EQ(job.On(RankJoined{1}), "begin 2");
}

TEST(Job, AFailureBeforeAnyGenerationEndsTheOthersAtOnce) {
  Script job(3);
  job.StartAll();
  EXPECT_EQ(job.Exit(1, 3), "signal 15");
  EXPECT_EQ(job.After(seconds(5)), "signal 9") << "after the grace";
  EXPECT_EQ(job.Killed(0, SIGTERM), "");
  EXPECT_EQ(job.Killed(2, SIGKILL), "finish");
  EXPECT_EQ(job.On(AgentFinished{0}), "end");
  EXPECT_EQ(ExitCode(job.state), 3);
  EXPECT_EQ(FirstFailedRank(job.state), 1u);
}

TEST(Job, ALossInsideAnGenerationBreaksItAndLetsSurvivorsSpeak) {
  Script job(3);
  job.StartAll();
  job.JoinAll();
  EXPECT_EQ(job.Lost(1, 1), "break 1");
  EXPECT_EQ(job.Killed(1, SIGSEGV), "");
  job.Left(0, 1);
  EXPECT_EQ(job.Exit(0, 1), "") << "HorovodInternalError, not the cause";
  EXPECT_EQ(job.After(seconds(1)), "signal 15") << "the last one had its time";
  EXPECT_EQ(job.Exit(2, 1), "finish");
  job.On(AgentFinished{0});
  EXPECT_EQ(FirstFailedRank(job.state), 1u);
  EXPECT_EQ(ExitCode(job.state), 128 + SIGSEGV);
}

TEST(Job, TheFirstToLeaveIsTheCauseEvenWhenItsExitIsSeenLast) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.Left(1, 1);  // sys.exit(3): its exit handler says goodbye, then Python takes its time
  job.Left(0, 1);  // the peer fails because of it ...
  job.Exit(0, 1);  // ... and is gone sooner
  job.Exit(1, 3);
  EXPECT_EQ(FirstFailedRank(job.state), 1u);
  EXPECT_EQ(ExitCode(job.state), 3);
}

TEST(Job, ABigDeadProcessIsReapedLateButStaysTheCause) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.Lost(1, 1);
  job.Left(0, 1);
  EXPECT_EQ(job.Exit(0, 1), "");
  EXPECT_EQ(job.Killed(1, SIGKILL), "finish");
  EXPECT_EQ(ExitCode(job.state), 137);
}

// h0 has been up for much longer than h1 and hvdrun's machine.
constexpr Duration kUpLonger = seconds(1'000'000);

void ReadClocks(Script& job) {
  job.state.clocks = {HostClock(), HostClock()};
  for (uint32_t host : {0U, 1U}) {
    const Duration ahead = host == 0 ? kUpLonger : Duration::zero();
    const TimePoint now = job.clock.Now();
    job.On(ClockRead{
        host,
        {now, now + milliseconds(2), (now + milliseconds(1) + ahead).time_since_epoch().count()}});
  }
}

TEST(Job, TheCauseIsFoundAmongHostsThatDidNotBootTogether) {
  struct Row {
    const char* what;
    Duration killed, exited;  // of the rank on h0, of its peer on h1; on hvdrun's clock
    bool told;                // the rank on h1 had failed because of others
    uint32_t named;
  };
  const Row rows[] = {
      {"the cause has the larger clock", milliseconds(50), milliseconds(80), false, 0},
      {"its agent noticed it late", milliseconds(80), milliseconds(50), true, 0},
      {"too close to tell", milliseconds(51), milliseconds(50), false, 0},
      {"the exit was long before", milliseconds(90), milliseconds(50), false, 1},
  };
  for (const Row& row : rows) {
    for (bool consequence_first : {true, false}) {
      Script job(2, 2);
      job.StartAll();
      job.JoinAll();
      ReadClocks(job);
      auto stamp = [&](Duration d) { return (job.clock.Now() + d).time_since_epoch().count(); };
      const int64_t killed = stamp(row.killed + kUpLonger), exited = stamp(row.exited);
      auto consequence = [&] {
        job.On(RankLost{1, 101, 1, exited, "it died", "", row.told});
        job.Exit(1, 1, exited);
      };
      if (consequence_first) consequence();
      job.On(RankLost{0, 100, 1, killed, "it died"});
      job.Killed(0, SIGKILL, killed);
      if (!consequence_first) consequence();
      EXPECT_EQ(FirstFailedRank(job.state), row.named) << row.what;
      EXPECT_EQ(ExitCode(job.state), row.named == 0 ? 137 : 1) << row.what;
    }
  }
}

TEST(Job, WhatHappenedBeforeTheOthersWereAskedToEndIsNotTheirDoing) {
  struct Row {
    Duration killed;  // after the peer's exit
    uint32_t named;
    bool by_us;
  };
  // The way to h0 was lost for a while: an event there is heard after SIGTERM was sent.
  // SIGTERM comes a second after the peer's exit, and clocks may step by 200 ms.
  for (const Row& row : {Row{milliseconds(-20), 0, false}, Row{milliseconds(700), 1, false},
                         Row{milliseconds(900), 1, true}, Row{milliseconds(3000), 1, true}}) {
    Script job(2, 2);
    job.StartAll();
    job.JoinAll();
    ReadClocks(job);
    job.clock.Advance(milliseconds(500));
    const int64_t exited = job.clock.Now().time_since_epoch().count();
    const int64_t killed = exited + (row.killed + kUpLonger).count();
    job.On(RankLost{1, 101, 1, exited, "it died"});
    job.Exit(1, 1, exited);
    EXPECT_EQ(job.After(seconds(1)), "signal 15");
    EXPECT_EQ(job.After(seconds(1)), "");
    job.On(RankLost{0, 100, 1, killed, "it died"});
    job.Killed(0, SIGKILL, killed);
    EXPECT_EQ(FirstFailedRank(job.state), row.named);
    EXPECT_EQ(job.state.ranks[0].ended_by_us(), row.by_us);
  }
}

TEST(Job, LeavingTheOthersInAnGenerationWithCode0IsAFailure) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.Lost(1, 1);
  job.Exit(1, 0);
  job.Left(0, 1);
  job.Exit(0, 5);
  EXPECT_EQ(FirstFailedRank(job.state), 1u);
  EXPECT_EQ(ExitCode(job.state), 1);
  EXPECT_THAT(Report(job.state), testing::HasSubstr("rank 1 on host h0 (pid 101) ended too early"));
}

Verdict AVerdict(bool never_ends) {
  Verdict verdict;
  verdict.sentence = "rank 0 has waited 5 s in 'x' for rank 1 to submit it";
  verdict.details = "  rank 1 is busy.\n";
  verdict.missing = {{1, RankClass::kBusy}};
  verdict.never_ends = never_ends;
  return verdict;
}

// os._exit(0) after the last collective, on some or all ranks, in any order.
TEST(Job, RanksThatLeaveWithoutGoodbyeAndAreNotMissedFailNothing) {
  for (const bool all : {true, false}) {
    Script job(3);
    job.StartAll();
    job.JoinAll();
    EXPECT_EQ(job.Lost(1, 1), "break 1");
    EXPECT_EQ(job.Exit(1, 0), "");
    EXPECT_EQ(job.state.phase, JobPhase::kRunning);
    all ? job.Lost(0, 1) : job.Left(0, 1);
    EXPECT_EQ(job.Exit(0, 0), "");
    EXPECT_EQ(job.After(seconds(9)), "") << "rank 2 may take its time";
    job.Lost(2, 1);
    const std::string who = all ? "ranks 0-2 (pids 100, 101, 102)" : "ranks 1-2 (pids 101, 102)";
    EXPECT_EQ(job.Exit(2, 0),
              "finish, " + who +
                  " ended with exit code 0 in the middle of the job, without hvd.shutdown(); no "
                  "rank failed because of that, so the job has succeeded. Call hvd.shutdown() "
                  "before os._exit()");
    job.On(AgentFinished{0});
    EXPECT_EQ(ExitCode(job.state), 0);
    EXPECT_EQ(Report(job.state), "");
  }
}

TEST(Job, ARankThatStaysInAWorldThatAnotherHasLeftWithoutGoodbyeEndsTheJob) {
  for (const bool stays : {true, false}) {
    Script job(2);
    job.StartAll();
    job.JoinAll();
    job.Lost(1, 1);
    job.Exit(1, 0);
    if (!stays) job.Left(0, 1);  // hvd.shutdown(), and it saves something
    EXPECT_EQ(job.After(seconds(10)), "");
    EXPECT_EQ(job.After(seconds(1)), stays ? "signal 15" : "");
    EXPECT_EQ(job.state.failure.has_value(), stays);
    stays ? job.Killed(0, SIGTERM) : job.Exit(0, 0);
    EXPECT_EQ(ExitCode(job.state), stays ? 1 : 0);
  }
}

TEST(Job, ALostRankFailsTheJobByItsExitCodeOrWhenThatDoesNotCome) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  EXPECT_EQ(job.Lost(1, 1), "break 1");
  EXPECT_EQ(job.On(GenerationEnding{1, {0, "rank 1 has closed its connection"}}), "")
      << "a consequence";
  EXPECT_EQ(job.On(StallExplained{1, AVerdict(true)}), "") << "another one";
  EXPECT_EQ(job.Exit(1, 7), "");
  EXPECT_EQ(job.After(seconds(1)), "signal 15");
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kRank);

  job = Script(2);
  job.StartAll();
  job.JoinAll();
  job.Lost(1, 1);  // and goes on as another program, say
  ASSERT_TRUE(NextTick(job.state));
  EXPECT_EQ(job.After(seconds(10)), "");
  EXPECT_EQ(job.After(seconds(1)), "signal 15");
  job.Exit(0, 0);
  EXPECT_EQ(job.Killed(1, SIGTERM), "finish");
  EXPECT_EQ(FirstFailedRank(job.state), 1U);
}

TEST(Job, WhateverComesBeforeTheExitCodeOfALostRankIsNotTheCause) {
  const JobEvent others[] = {Interrupted{SIGINT}, AgentLost{0, "its connection broke"}};
  for (const JobEvent& other : others) {
    Script job(2, 2);
    job.StartAll();
    job.JoinAll();
    job.Lost(0, 1);
    job.On(other);
    ASSERT_TRUE(job.state.failure);
    EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kRank);
  }
}

TEST(Job, AGoodbyeAndCode0IsNoFailure) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.Left(1, 1);
  EXPECT_EQ(job.Exit(1, 0), "");
  job.Left(0, 1);
  EXPECT_EQ(job.Exit(0, 0), "finish");
  EXPECT_EQ(ExitCode(job.state), 0);
}

TEST(Job, WaitingRanksHearThatTheWorldCannotForm) {
  struct Row {
    bool exit_first;
  };
  for (bool exit_first : {true, false}) {
    Script job(2);
    job.StartAll();
    if (exit_first) {
      EXPECT_EQ(job.Exit(1, 0), "");
      EXPECT_EQ(job.On(RankJoined{0}), "break 0");
    } else {
      job.On(RankJoined{0});
      EXPECT_EQ(job.Exit(1, 0), "break 0");
    }
    EXPECT_EQ(job.told,
              "rank 1 (pid 101) ended with exit code 0 before it called hvd.init(), so the world "
              "of 2 cannot form");
    EXPECT_EQ(job.Exit(0, 4), "finish");
    EXPECT_EQ(ExitCode(job.state), 1);
    EXPECT_THAT(
        Report(job.state, TracebackPlace::kInReport),
        testing::StartsWith("hvdrun: rank 1 on host h0 (pid 101) ended too early (exit code 0).\n"
                            "  Other ranks waited in hvd.init() for it to call that, too.\n"));
  }
}

TEST(Job, RanksThatDoWithoutTheWorldThatCannotFormSucceed) {
  Script job(2);
  job.StartAll();
  job.Exit(1, 0);
  job.On(RankJoined{0});
  EXPECT_EQ(job.Exit(0, 0), "finish");
  EXPECT_EQ(ExitCode(job.state), 0);
}

TEST(Job, AWaitingRankThatDiesIsNoLossOfAGeneration) {
  Script job(2);
  job.StartAll();
  job.On(RankJoined{0});
  EXPECT_EQ(job.Lost(0, 0), "");
  EXPECT_EQ(job.On(RankJoined{1}), "") << "rank 0 does not wait any more";
  EXPECT_EQ(job.Exit(0, 2), "break 0, signal 15");
}

TEST(Job, ACommandThatCannotBeStarted) {
  struct Row {
    int error, code;
  };
  for (const Row& row : {Row{ENOENT, 127}, Row{ENOTDIR, 127}, Row{EACCES, 126}, Row{EIO, 126}}) {
    Script job(2);
    job.HostsGetReady();
    EXPECT_EQ(job.On(WorkerNotStarted{0, row.error, "no"}), "signal 15");
    EXPECT_EQ(job.On(WorkerNotStarted{1, row.error, "no"}), "finish");
    job.On(AgentFinished{0});
    EXPECT_EQ(ExitCode(job.state), row.code);
  }
}

constexpr const char* kInterrupted =
    "interrupted: every rank gets SIGINT now, SIGTERM after 3 s and SIGKILL 3 s later; Ctrl-C "
    "again kills them at once, "
    "signal 2";

TEST(Job, InterruptOnceIsGracefulTwiceIsAtOnce) {
  Script job(2);
  job.StartAll();
  EXPECT_EQ(job.On(Interrupted{SIGINT}), kInterrupted);
  EXPECT_EQ(job.After(seconds(1)), "");
  EXPECT_EQ(job.On(Interrupted{SIGINT}), "signal 9");
  EXPECT_EQ(job.On(Interrupted{SIGINT}), "") << "more cannot be done";
  job.Killed(0, SIGKILL);
  EXPECT_EQ(job.Killed(1, SIGKILL), "finish");
  EXPECT_EQ(job.On(AgentFinished{0}), "end");
  EXPECT_EQ(ExitCode(job.state), 130);
}

TEST(Job, SigintThenSigtermThenSigkill) {
  Script job(2);
  job.StartAll();
  EXPECT_EQ(job.On(Interrupted{SIGINT}), kInterrupted);
  EXPECT_EQ(job.After(seconds(2)), "");
  EXPECT_EQ(job.After(seconds(1)), "signal 15");
  EXPECT_EQ(job.After(seconds(2)), "");
  EXPECT_EQ(job.After(seconds(1)), "signal 9");
}

TEST(Job, SigtermAfterSigintIsTheNextStepAndThenTheLast) {
  Script job(2);
  job.StartAll();
  job.On(Interrupted{SIGINT});
  EXPECT_EQ(job.On(Interrupted{SIGTERM}), "signal 15");
  EXPECT_EQ(job.On(Interrupted{SIGTERM}), "signal 9");
}

TEST(Job, SigtermComesWithoutSigint) {
  for (int signal : {SIGTERM, SIGHUP}) {
    Script job(2);
    job.StartAll();
    EXPECT_EQ(job.On(Interrupted{signal}), "signal 15");
    EXPECT_EQ(job.On(Interrupted{SIGINT}), "signal 9");
  }
}

TEST(Job, AfterCtrlCEveryFailureIsAConsequence) {
  Script job(3);
  job.StartAll();
  job.JoinAll();
  job.On(Interrupted{SIGINT});
  job.Lost(1, 1);  // KeyboardInterrupt ended it inside a collective
  job.Exit(1, 130);
  job.Exit(0, 1);  // HorovodInternalError
  job.Exit(2, 1);
  job.On(AgentFinished{0});
  EXPECT_EQ(ExitCode(job.state), 130);
  EXPECT_EQ(FirstFailedRank(job.state), std::nullopt);
}

TEST(Job, ARankThatFailedBeforeStaysTheFirstCause) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.Lost(1, 1);
  EXPECT_EQ(job.On(Interrupted{SIGINT}), "signal 15") << "it had failed already";
  job.Exit(1, 7);
  job.Exit(0, 143);
  job.On(AgentFinished{0});
  EXPECT_EQ(ExitCode(job.state), 7);
}

TEST(Job, AJobThatWasAskedToEndDoesNotWaitForItsReader) {
  for (int signal : {SIGINT, SIGTERM}) {
    Script job(1);
    job.StartAll();
    job.On(Interrupted{signal});
    EXPECT_EQ(job.Exit(0, 128 + signal), "finish");
    EXPECT_EQ(job.After(seconds(2)), "");
    EXPECT_EQ(job.After(seconds(1)), "cut");
  }
  Script job(1);
  job.StartAll();
  EXPECT_EQ(job.Exit(0, 3), "finish");
  EXPECT_EQ(job.After(seconds(3600)), "") << "a pager is read when somebody has the time";
}

TEST(Job, InterruptWhileSurvivorsSpeakEndsThem) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.Lost(1, 1);
  EXPECT_EQ(job.On(Interrupted{SIGTERM}), "signal 15");
  EXPECT_EQ(job.After(seconds(5)), "signal 9");
}

TEST(Job, AnAgentThatDoesNotObeySigkillIsCut) {
  Script job(1);
  job.StartAll();
  job.On(Interrupted{SIGTERM});
  EXPECT_EQ(job.After(seconds(5)), "signal 9");
  EXPECT_EQ(job.After(seconds(3)), "cut");
  EXPECT_EQ(job.On(AgentLost{0, "killed"}), "finish, end");
  EXPECT_EQ(ExitCode(job.state), 143);
}

TEST(Job, LastOutputThatNobodyReadsCanBeInterrupted) {
  Script job(1);
  job.StartAll();
  EXPECT_EQ(job.Exit(0, 0), "finish");
  EXPECT_EQ(job.On(Interrupted{SIGINT}), "cut");
  EXPECT_EQ(job.On(AgentLost{0, "cut"}), "end");
  EXPECT_EQ(ExitCode(job.state), 0) << "the workers did well";
}

TEST(Job, ARankThatEndsTheGenerationIsNotTheOneToBlame) {
  Script job(3);
  job.StartAll();
  job.JoinAll();
  EXPECT_EQ(job.On(GenerationEnding{1, {0, "rank 0 has waited 5 s for rank 2"}}), "break 1");
  EXPECT_EQ(job.told, "rank 0 has waited 5 s for rank 2");
  EXPECT_FALSE(job.state.failure) << "the ranks may begin another generation";
  job.On(RankStopped{2});
  EXPECT_EQ(job.Exit(0, 7), "");
  ASSERT_TRUE(job.state.failure);
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kEnding);
  EXPECT_EQ(job.state.failure->reason, "rank 0 has waited 5 s for rank 2");
  EXPECT_TRUE(job.state.stopped.contains(2));
  EXPECT_EQ(job.After(seconds(1)), "signal 15");
  job.Killed(1, SIGTERM);
  EXPECT_EQ(job.Killed(2, SIGTERM), "finish");
  EXPECT_EQ(ExitCode(job.state), 7);
}

TEST(Job, AStallIsReportedAndEndsNothing) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  EXPECT_EQ(job.On(StallExplained{1, AVerdict(false)}),
            "rank 0 has waited 5 s in 'x' for rank 1 to submit it\n  rank 1 is busy.");
  EXPECT_FALSE(job.state.failure);
  EXPECT_EQ(job.On(StallExplained{2, AVerdict(true)}), "") << "of no generation of ours";
  job.On(GenerationEnding{1, {0, "out of memory"}});
  EXPECT_EQ(job.state.ending->kind, JobFailure::Kind::kEnding) << "that was no limit";
}

TEST(Job, AStallThatNeverEndsEndsTheJobWithItsOwnCode) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  EXPECT_TRUE(job.On(StallExplained{1, AVerdict(true)}).ends_with("break 1"));
  EXPECT_TRUE(job.told.starts_with("rank 0 has waited 5 s in 'x' for rank 1 to submit it; it can"))
      << job.told;
  EXPECT_FALSE(job.state.failure) << "the ranks may begin another generation";
  job.Exit(0, 7);
  ASSERT_TRUE(job.state.failure);
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kStall);
  EXPECT_EQ(job.After(milliseconds(500)), "signal 15") << "sooner than in other cases";
  EXPECT_EQ(job.After(milliseconds(500)), "signal 9");
  EXPECT_EQ(job.Killed(1, SIGKILL), "finish");
  EXPECT_EQ(ExitCode(job.state), 79);
}

TEST(Job, AScriptThatHangsIsReportedAndEndsAtTheLimitAlone) {
  Script job(2);
  job.StartAll();
  EXPECT_EQ(job.On(ScriptStall{AVerdict(false), true, false}),
            "rank 0 has waited 5 s in 'x' for rank 1 to submit it\n  rank 1 is busy.");
  EXPECT_FALSE(job.state.failure);
  job.On(ScriptStall{AVerdict(false), false, true});
  ASSERT_TRUE(job.state.failure);
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kStall);
  EXPECT_THAT(job.state.failure->reason, testing::HasSubstr("longer than --stall-check-shutdown"));
  EXPECT_EQ(job.On(ScriptStall{AVerdict(false), true, false}), "") << "it ends";
  job.After(milliseconds(500));
  job.Killed(0, SIGTERM);
  EXPECT_EQ(job.Killed(1, SIGTERM), "finish");
  EXPECT_EQ(ExitCode(job.state), 79);
}

TEST(Job, ALimitThatIsReachedEndsTheJobWithTheLastVerdict) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.On(StallExplained{1, AVerdict(false)});
  job.On(GenerationEnding{1, {0, "rank 0 has waited too long", true}});
  job.Exit(0, 7);
  ASSERT_TRUE(job.state.failure);
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kStall);
  EXPECT_EQ(job.state.failure->reason, "rank 0 has waited too long");
  ASSERT_EQ(job.state.failure->verdict.missing.size(), 1U);
  EXPECT_EQ(ExitCode(job.state), 79);
}

TEST(Job, ALimitThatIsReachedBeforeAnyVerdictNamesStoppedRanks) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.On(GenerationEnding{1, {0, "rank 0 has waited too long", true}});
  job.On(RankStopped{1});
  job.Exit(0, 7);
  EXPECT_EQ(Report(job.state),
            "hvdrun: rank 1 on host h0 (pid 101) is stopped by a signal.\n"
            "  So rank 0 has waited too long.\n  All ranks were ended.\n");
  EXPECT_EQ(ExitCode(job.state), 79);
}

TEST(Job, AnGenerationThatWasEndedIsForgottenWithTheNext) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.On(GenerationEnding{1, {0, "a stall"}});
  job.On(RankStopped{1});
  EXPECT_EQ(job.JoinAll(), "begin 2");
  EXPECT_EQ(job.On(GenerationEnding{1, {0, "said late"}}), "") << "of a generation that is over";
  job.Lost(1, 2);
  job.Killed(1, SIGKILL);
  ASSERT_TRUE(job.state.failure);
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kRank);
  EXPECT_FALSE(job.state.stopped.contains(1));
}

TEST(Job, AWayBetweenHostsThatIsSilentIsNamedAndNoRankIs) {
  Script job(2, 2);
  job.StartAll();
  job.JoinAll();
  EXPECT_EQ(job.On(SilentRoute{1, 0, 1, milliseconds(5300)}), "break 1");
  EXPECT_EQ(job.told,
            "the connection between the hosts h1 and h0 is broken: rank 1 on h1 has heard nothing "
            "from rank 0 on h0 for 5 s, though hvdrun reaches both hosts; look for a firewall or a "
            "fault of the network between them");
  job.Exit(0, 3);
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kRoute);
  EXPECT_EQ(job.On(SilentRoute{1, 0, 1, milliseconds(6300)}), "") << "once";
}

TEST(Job, AHostThatGoesAfterAllIsTheCauseAndNotTheWayToIt) {
  Script job(2, 2);
  job.StartAll();
  job.JoinAll();
  job.On(SilentRoute{0, 1, 1, seconds(5)});
  job.Exit(0, 3);
  job.On(AgentLost{1, "the connection ended"});
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kHost);
}

TEST(Job, AHostThatGoesIsTheCauseThoughItsPeersSaidSoFirst) {
  Script job(2, 2);
  job.StartAll();
  job.JoinAll();
  EXPECT_EQ(job.Exit(0, 3), "") << "it lost its peer, and says so within the grace";
  job.On(AgentLost{1, "the connection ended"});
  ASSERT_TRUE(job.state.failure);
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kHost);
  EXPECT_EQ(job.state.failure->host, 1U);
}

TEST(Job, AHostThatGoesAfterItsOwnRankFailedIsNotTheCause) {
  Script job(4, 2);
  job.StartAll();
  job.JoinAll();
  job.Exit(2, 3);
  job.On(AgentLost{1, "the connection ended"});
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kRank);
  EXPECT_EQ(FirstFailedRank(job.state), 2U);
}

TEST(Job, AHostThatGoesAfterCtrlCIsNotTheCause) {
  Script job(2, 2);
  job.StartAll();
  job.JoinAll();
  job.Exit(0, 3);
  job.On(Interrupted{SIGINT});
  job.On(AgentLost{1, "it is gone"});
  ASSERT_TRUE(job.state.failure);
  EXPECT_EQ(job.state.failure->kind, JobFailure::Kind::kRank);
}

TEST(Job, AHostThatGoesSilentAfterItsRanksSaidGoodbyeFailsNothing) {
  Script job(4, 2);
  job.StartAll();
  job.JoinAll();
  for (uint32_t rank : {0, 1, 2, 3}) job.Left(rank, 1);
  job.Exit(0, 0);
  job.Exit(1, 0);
  EXPECT_EQ(job.On(AgentLost{1, "its agent has been silent for 5 s"}),
            "host h1 was lost: its agent has been silent for 5 s; its ranks had left the world "
            "with "
            "hvd.shutdown() before that, and all other ranks have finished, so the job has "
            "succeeded, finish");
  job.On(AgentFinished{0});
  EXPECT_EQ(ExitCode(job.state), 0);
}

TEST(Job, AHostThatGoesSilentInTheLastStepsSaysThatTheOthersHadFinished) {
  Script job(4, 2);
  job.StartAll();
  job.JoinAll();
  for (uint32_t rank : {0, 1, 2}) job.Left(rank, 1);  // rank 3 is still in its world
  job.Exit(0, 0);
  job.Exit(1, 0);
  EXPECT_EQ(job.On(AgentLost{1, "its agent has been silent for 5 s"}), "finish");
  job.On(AgentFinished{0});
  EXPECT_EQ(ExitCode(job.state), 1);
  EXPECT_EQ(Report(job.state),
            "hvdrun: host h1 was lost: its agent has been silent for 5 s. The ranks of all other "
            "hosts had finished.\n");
}

TEST(Job, AHostThatGoesWhileOthersRunIsAFailureThoughItsRanksSaidGoodbye) {
  Script job(2, 2);
  job.StartAll();
  job.JoinAll();
  job.Left(0, 1);
  job.Left(1, 1);
  job.On(AgentLost{1, "cut"});
  EXPECT_TRUE(job.state.failure) << "rank 0 may still need it";
}

TEST(Job, ALostAgentEndsTheJobOnTheOtherHosts) {
  Script job(2, 2);
  job.StartAll();
  EXPECT_EQ(job.On(AgentLost{0, "the agent was killed"}), "signal 15");
  EXPECT_EQ(job.Killed(1, SIGTERM), "finish");
  EXPECT_EQ(job.On(AgentFinished{1}), "end");
  EXPECT_EQ(ExitCode(job.state), 1);
  EXPECT_EQ(job.state.failure->reason, "the agent was killed");
}

TEST(Job, WorkersThatAreNotStartedInTimeEndTheJob) {
  Script job(2);
  job.On(Begun{});
  job.HostsGetReady();
  job.On(WorkerStarted{0, 100});
  EXPECT_EQ(job.After(seconds(29)), "");
  EXPECT_EQ(job.After(seconds(1)), "signal 15");
  EXPECT_EQ(job.After(seconds(5)), "signal 9");
  EXPECT_EQ(job.After(seconds(3)), "cut");
  EXPECT_EQ(job.On(AgentLost{0, "cut"}), "finish, end");
  EXPECT_EQ(ExitCode(job.state), 1);
}

TEST(Job, ATimeoutEndsTheJobGracefullyWith124) {
  Script job(1);
  job.state.options.timeout = seconds(60);
  job.On(Begun{});
  job.StartAll();
  EXPECT_EQ(job.After(seconds(59)), "");
  EXPECT_EQ(job.After(seconds(1)), "signal 15");
  EXPECT_EQ(job.reason, "the job did not end within the 60 s of --timeout; all ranks were ended");
  EXPECT_EQ(job.After(seconds(5)), "signal 9");
  EXPECT_EQ(job.Killed(0, SIGKILL), "finish");
  EXPECT_EQ(ExitCode(job.state), 124);
}

TEST(Job, ATimeoutAfterAFailureChangesNothing) {
  Script job(2);
  job.state.options.timeout = seconds(2);
  job.On(Begun{});
  job.StartAll();
  job.Exit(0, 3);
  EXPECT_EQ(job.After(seconds(2)), "");
  EXPECT_EQ(job.Killed(1, SIGTERM), "finish");
  EXPECT_EQ(ExitCode(job.state), 3);
}

TEST(Job, TimeWhilePausedDoesNotCount) {
  Script job(1);
  job.state.options.timeout = seconds(60);
  job.On(Begun{});
  job.StartAll();
  EXPECT_EQ(job.On(Paused{}), "signal 19");
  EXPECT_EQ(job.On(Paused{}), "") << "it is";
  job.clock.Advance(seconds(600));
  EXPECT_EQ(job.On(Resumed{}), "signal 18");
  EXPECT_EQ(job.On(Resumed{}), "");
  EXPECT_EQ(job.After(seconds(59)), "");
  EXPECT_EQ(job.After(seconds(1)), "signal 15");
}

TEST(Job, WhoHasNotCalledInitIsSaidAtGrowingIntervals) {
  Script job(5);
  job.On(Begun{});
  job.StartAll();
  EXPECT_FALSE(NextTick(job.state)) << "nobody calls it: perhaps no such job at all";
  job.On(RankJoined{3});
  struct Row {
    int after;
    const char* said;
  };
  const std::string who = "ranks 0-2,4 (pids 100, 101, 102, 104) have not called hvd.init(); ";
  for (const Row& row : {Row{9, ""},
                         {1, "for 10 s"},
                         {9, ""},
                         {1, "for 20 s"},
                         {29, ""},
                         {1, "for 50 s"},
                         {59, ""},
                         {1, "for 110 s"},
                         {59, ""},
                         {1, "for 170 s"}}) {
    std::string said = row.said;
    EXPECT_EQ(job.After(seconds(row.after)),
              said.empty() ? "" : who + "1 of 5 ranks waits there, the first " + said);
  }
  job.On(RankJoined{0}), job.On(RankJoined{1}), job.On(RankJoined{2});
  EXPECT_EQ(
      job.After(seconds(60)),
      "rank 4 (pid 104) has not called hvd.init(); 4 of 5 ranks wait there, the first for 230 s");
  EXPECT_EQ(job.On(RankJoined{4}), "begin 1");
  EXPECT_FALSE(NextTick(job.state)) << "all are in";
  EXPECT_EQ(job.After(seconds(600)), "");
}

TEST(Job, AWaitForInitThatEndsIsSaidNoMore) {
  struct Row {
    const char* what;
    JobEvent event;
  };
  for (const Row& row : {Row{"a failure", WorkerExited{1, 101, {false, 3}, 1, ""}},
                         {"an end with code 0", WorkerExited{1, 101, {false, 0}, 1, ""}},
                         {"the one who waits is lost", RankLost{0, 100, 0, 1, ""}},
                         {"Ctrl-C", Interrupted{SIGINT}},
                         {"a lost agent", AgentLost{0, "gone"}}}) {
    Script job(2);
    job.state.options.terminate_grace = seconds(3600);
    job.On(Begun{});
    job.StartAll();
    job.On(RankJoined{0});
    job.On(row.event);
    EXPECT_EQ(job.After(seconds(60)).find("hvd.init"), std::string::npos) << row.what;
    EXPECT_FALSE(job.state.init_watch) << row.what;
  }
}

TEST(Job, AWaitForTheNextInitIsWatchedFromItsOwnStart) {
  Script job(2);
  job.StartAll();
  job.On(RankJoined{0});
  job.clock.Advance(seconds(8));
  job.On(RankJoined{1});
  job.Left(0, 1);
  job.On(RankJoined{0});
  EXPECT_EQ(job.After(seconds(9)), "");
  job.On(Paused{});
  EXPECT_EQ(job.After(seconds(600)), "") << "nobody can call anything";
  job.On(Resumed{});
  EXPECT_EQ(job.After(seconds(1)),
            "rank 1 (pid 101) has not called hvd.init() again; 1 of 2 ranks waits there, the first "
            "for 10 s");
}

TEST(Job, ManyWhoHaveNotCalledInitAreSaidInOneLine) {
  Script job(1000);
  job.StartAll();
  job.On(RankJoined{999});
  std::string said = job.After(seconds(10));
  EXPECT_TRUE(said.starts_with("ranks 0-998 (pids 100, 101, ")) << said;
  EXPECT_NE(said.find("115 and 983 more) have not called hvd.init(); 1 of 1000"), std::string::npos)
      << said;
}

TEST(Job, NonsenseFromAnAgentIsIgnored) {
  Script job(1);
  for (const JobEvent& event :
       {JobEvent(WorkerStarted{7, 1}), JobEvent(RankJoined{7}), JobEvent(RankLeft{7, 1, 1}),
        JobEvent(RankLost{7, 1, 1, 1, ""}), JobEvent(WorkerExited{7, 1, {}, 1, ""}),
        JobEvent(WorkerNotStarted{7, 2, ""}), JobEvent(RankLost{0, 1, 99, 1, ""})}) {
    EXPECT_EQ(job.On(event), "");
  }
}

// ---- SIGUSR1 to a job of fixed size

TEST(Job, ItsRanksAreAskedToStopAtOneCommit) {
  Script job(2, 2);
  job.StartAll();
  job.JoinAll();
  EXPECT_EQ(job.On(StopAsked{SIGUSR1}), "hold");
  EXPECT_EQ(job.On(StopAsked{SIGUSR1, {}, 1}), "") << "asked already";
  EXPECT_EQ(job.On(CommitsHeldBy{0, {1, 4}}), "");
  EXPECT_EQ(job.On(CommitsHeldBy{1, {1, 7}}), "act at 8");
  job.Left(0, 1);
  EXPECT_EQ(job.Exit(0, kStoppedExitCode), "") << "it did what it was asked to";
  job.Left(1, 1);
  EXPECT_EQ(job.Exit(1, kStoppedExitCode), "finish");
  job.On(AgentFinished{0});
  EXPECT_EQ(job.On(AgentFinished{1}), "end");
  EXPECT_EQ(ExitCode(job.state), kStoppedExitCode);
  EXPECT_THAT(Report(job.state), testing::HasSubstr("as signal 10 (SIGUSR1) asks"));
}

TEST(Job, ARankThatFailsAfterARequestToStopIsAFailure) {
  Script job(2);
  job.StartAll();
  job.JoinAll();
  job.On(StopAsked{SIGUSR1});
  EXPECT_EQ(job.On(CommitsHeldBy{0, {1, 0}}), "act at 1");
  job.Left(0, 1);
  job.Exit(0, kStoppedExitCode);
  job.Left(1, 1);
  job.Exit(1, 3);
  EXPECT_EQ(ExitCode(job.state), 3);
}

TEST(Job, ThatCodeWithoutARequestIsAFailure) {
  Script job(2);
  job.StartAll();
  job.Exit(0, kStoppedExitCode);
  EXPECT_TRUE(job.state.failure);
  EXPECT_EQ(ExitCode(job.state), kStoppedExitCode);
}

TEST(Job, RanksOutsideOfAWorldAreNotAskedToStop) {
  Script job(2);
  job.StartAll();
  EXPECT_EQ(job.On(StopAsked{SIGUSR1}), "");
  EXPECT_FALSE(job.state.failure);
}

}  // namespace
}  // namespace hvd
