// Elastic jobs, told as scripts: which workers start, who is in a generation, what a loss means.
#include "launcher/job/elastic/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "launcher/driver/job_outline.h"
#include "launcher/job/job.h"
#include "launcher/job/job_pause.h"
#include "launcher/job/report/job_result.h"
#include "launcher/job/report/report.h"
#include "runtime/segment/job_page.h"
#include "test/sim/recounted.h"

namespace hvd {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

JobPolicy Limits(uint32_t min_np, uint32_t np, uint32_t max_np) {
  JobPolicy limits = ElasticPolicy(min_np, np, max_np);
  limits.elastic_timeout = seconds(60);
  limits.init_timeout = seconds(100);
  limits.failures = {10, std::nullopt};
  return limits;
}

JobPolicy LimitsWithASpare(uint32_t min_np, uint32_t np, uint32_t max_np) {
  JobPolicy limits = Limits(min_np, np, max_np);
  limits.spares = 1;
  return limits;
}

class Script {
 public:
  explicit Script(const JobPolicy& limits) : state(Plan{}, JobOptions{}, {}, limits, 1) {
    On(Begun{});
  }

  void On(const JobEvent& event) {
    const Decision decision = Step(state, event, clock.Now());
    EXPECT_EQ(test::WrongCount(state), "");
    last = decision.actions;
    reason = decision.reason;
    for (const JobAction& action : decision.actions) {
      if (const auto* notice = std::get_if<NotifyUser>(&action)) told += notice->sentence + "\n";
    }
  }
  void List(const std::vector<HostSlots>& hosts) { On(HostsListed{hosts, {}}); }
  void Start(uint32_t worker) { On(WorkerStarted{worker, static_cast<int32_t>(100 + worker)}); }
  void Join(const std::vector<uint32_t>& workers) {
    for (uint32_t worker : workers) On(RankJoined{worker});
  }
  void Exit(uint32_t worker, ProcessEnd end, const std::string& words = "") {
    On(WorkerExited{worker, 1, end, 1, words});
  }
  void Die(uint32_t worker) {
    On(RankLost{worker, 1, state.ranks[worker].in_generation, 1, "it died"});
    Exit(worker, {true, SIGKILL});
  }
  void After(Duration time) {
    clock.Advance(time);
    On(Tick{});
  }
  // `slots` on the one host "a", all in generation 1.
  void Run(uint32_t slots) {
    List({{"a", slots}});
    On(AgentIsReady{0});
    for (uint32_t worker = 0; worker < slots; ++worker) Start(worker);
    for (uint32_t worker = 0; worker < slots; ++worker) Join({worker});
  }
  // Workers 0 and 1 of host "a", which has `slots`, have started; none has joined.
  void StartTwoOf(uint32_t slots) {
    List({{"a", slots}});
    On(AgentIsReady{0});
    for (uint32_t worker : {0, 1}) Start(worker);
  }
  // Workers 0 and 1 on "a", 2 and 3 on "b"; none has joined.
  void StartOnTwoHosts() {
    List({{"a", 2}, {"b", 2}});
    On(AgentIsReady{0});
    On(AgentIsReady{1});
    for (uint32_t worker = 0; worker < 4; ++worker) Start(worker);
  }
  // The ranks of the generation act at the same commit: they ask for the next one.
  void Commit() {
    for (uint32_t host : std::set<uint32_t>(state.elastic.holding))
      On(CommitsHeldBy{host, {state.generation, 1}});
    for (const Member& member : Generation(state.elastic.generation).members) Join({member.worker});
  }

  template <typename Action>
  const Action* Find() const {
    for (const JobAction& action : last) {
      if (const auto* found = std::get_if<Action>(&action)) return found;
    }
    return nullptr;
  }
  std::vector<uint32_t> Members() const {
    std::vector<uint32_t> workers;
    for (const Member& member : state.elastic.generation.members) workers.push_back(member.worker);
    return workers;
  }

  ManualClock clock;
  JobState state;
  std::vector<JobAction> last;
  std::string told, reason;
};

TEST(Membership, StartsOnceThereAreEnoughSlots) {
  Script job(Limits(1, 3, 4));
  job.List({{"a", 2}, {"b", 2}});
  job.On(AgentIsReady{0});
  EXPECT_EQ(job.Find<StartMembers>(), nullptr) << "two slots of three";
  job.On(AgentIsReady{1});
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  EXPECT_EQ(job.Find<StartMembers>()->members.size(), 4U);
}

TEST(Membership, AJobThatEndsWaitsForNoHosts) {
  Script job(Limits(1, 2, 3));
  job.Run(2);
  job.List({{"a", 2}, {"b", 1}});
  job.On(Interrupted{SIGINT});
  job.After(seconds(11));
  EXPECT_THAT(job.told, Not(HasSubstr("waiting for hosts")));
}

TEST(Membership, TheLogSaysWhoIsThereAndWhoIsNeededOnceEach) {
  Script job(Limits(2, 2, 3));
  job.List({{"a", 2}});
  job.On(AgentIsReady{0});
  job.Start(0);
  EXPECT_EQ(job.reason,
            "0 of 2 workers in hvd.init(), 1 starting; 0 free slots; generation 0; 2 to 3 ranks");
  job.On(Tick{});
  EXPECT_EQ(job.reason, "");
  job.Start(1);
  EXPECT_EQ(job.reason, "all workers are started") << "a decision comes first";
  job.Join({0});
  EXPECT_EQ(job.reason,
            "1 of 2 workers in hvd.init(), 0 starting; 0 free slots; generation 0; 2 to 3 ranks");
}

TEST(Membership, RanksFollowTheListWhicheverHostIsReadyFirst) {
  Script job(Limits(3, 3, 3));
  job.List({{"h10", 1}, {"h2", 1}, {"h1", 1}});
  for (uint32_t host : {2, 0, 1}) job.On(AgentIsReady{host});
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  std::vector<uint32_t> hosts;
  for (const Member& member : job.Find<StartMembers>()->members) hosts.push_back(member.place.host);
  EXPECT_THAT(hosts, ElementsAre(0, 1, 2));
}

TEST(Membership, WaitsAMomentForHostsThatAreOnTheirWay) {
  Script job(Limits(1, 2, 4));
  job.List({{"a", 2}, {"b", 2}});
  job.On(AgentIsReady{0});
  EXPECT_EQ(job.Find<StartMembers>(), nullptr);
  job.After(seconds(3));
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  EXPECT_EQ(job.Find<StartMembers>()->members.size(), 2U);
}

TEST(Membership, AWaitThatIsOverLeavesNoTick) {
  Script job(Limits(1, 2, 4));
  job.List({{"a", 2}, {"b", 2}});
  job.On(AgentIsReady{0});
  job.On(AgentLost{0, "it is gone"});
  job.After(seconds(4));
  EXPECT_GT(NextTick(job.state), job.clock.Now());
}

TEST(Membership, ASlowHostIsNamedOnce) {
  Script job(Limits(1, 1, 2));
  job.List({{"a", 1}});
  job.After(seconds(10));
  EXPECT_THAT(job.told, HasSubstr("waiting for hosts: a"));
  EXPECT_GT(NextTick(job.state), job.clock.Now());
}

TEST(Membership, AHostThatWasGivenUpIsNotWaitedFor) {
  Script job(Limits(1, 1, 2));
  job.List({{"a", 1}, {"b", 1}});
  job.On(AgentIsReady{0});
  job.On(AgentLost{1, "nobody answers"});
  job.List({{"a", 1}});
  job.After(seconds(10));
  EXPECT_THAT(job.told, Not(HasSubstr("waiting for hosts")));
}

TEST(Membership, ShrinksAtOnceWhenTheSurvivorsWait) {
  Script job(Limits(2, 3, 3));
  job.Run(3);
  EXPECT_THAT(job.Members(), ElementsAre(0, 1, 2));
  job.Die(1);
  job.Join({0});
  EXPECT_EQ(job.state.generation, 1U);
  job.Join({2});
  EXPECT_EQ(job.state.generation, 2U);
  EXPECT_THAT(job.Members(), ElementsAre(0, 2));
}

TEST(Membership, DoesNotGoBelowTheMinimum) {
  Script job(Limits(2, 2, 2));
  job.Run(2);
  job.Die(1);
  job.Join({0});
  EXPECT_EQ(job.state.generation, 1U);
  job.Start(2);
  job.Join({2});
  EXPECT_EQ(job.state.generation, 2U);
  EXPECT_THAT(job.Members(), ElementsAre(0, 2));
}

TEST(Membership, AReplacementJoinsAtACommit) {
  Script job(Limits(1, 2, 2));
  job.Run(2);
  job.Die(0);
  job.Join({1});
  EXPECT_THAT(job.Members(), ElementsAre(1));
  job.Start(2);
  job.Join({2});
  ASSERT_NE(job.Find<HoldCommits>(), nullptr);
  job.Commit();
  EXPECT_THAT(job.Members(), ElementsAre(1, 2)) << "rank 0 has the state";
}

TEST(Membership, AHostThatLeavesTheListIsDismissed) {
  Script job(Limits(1, 2, 2));
  job.List({{"a", 1}, {"b", 1}});
  job.On(AgentIsReady{0});
  job.On(AgentIsReady{1});
  for (uint32_t worker : {0, 1}) job.Start(worker);
  job.Join({0, 1});
  job.List({{"a", 1}});
  ASSERT_NE(job.Find<HoldCommits>(), nullptr);
  job.Commit();
  EXPECT_THAT(job.Members(), ElementsAre(0));
  ASSERT_NE(job.Find<DismissWorker>(), nullptr);
  job.Exit(1, {false, 0});
  ASSERT_NE(job.Find<DismissHost>(), nullptr);
  EXPECT_EQ(job.Find<DismissHost>()->host, 1U);
  EXPECT_FALSE(job.state.elastic.any_finished);
}

TEST(Membership, AHostThatLeavesBeforeItsWorkerIsAMemberStopsNobody) {
  Script job(Limits(1, 1, 2));
  job.Run(1);
  job.List({{"a", 1}, {"b", 1}});
  job.On(AgentIsReady{1});
  job.Start(1);
  job.List({{"a", 1}});
  job.On(Tick{});
  EXPECT_EQ(job.state.elastic.notice, CommitNotice::kNone);
  EXPECT_THAT(job.Members(), ElementsAre(0));
}

TEST(Membership, AListOfOtherHostsOnlyKeepsTheState) {
  Script job(Limits(1, 2, 2));
  job.Run(2);
  job.List({{"b", 2}});
  job.On(AgentIsReady{1});
  for (uint32_t worker : {2, 3}) job.Start(worker);
  EXPECT_EQ(job.state.elastic.notice, CommitNotice::kNone) << "none could go on yet";
  job.Join({2, 3});
  job.Commit();
  EXPECT_THAT(job.Members(), ElementsAre(0, 2)) << "a rank that has the state tells it";
  job.Commit();
  EXPECT_THAT(job.Members(), ElementsAre(2, 3));
}

TEST(Membership, AnErrorOfTheScriptEndsTheJob) {
  Script job(Limits(1, 2, 2));
  job.Run(2);
  job.Exit(1, {false, 3}, "Traceback (most recent call last):\n  x\nValueError: no data\n");
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_EQ(ExitCode(job.state), 3);
}

TEST(Membership, HvdrunPsCountsTheRanksAndNotTheWorkersThatThereWere) {
  Script job(Limits(1, 3, 3));
  job.Run(3);
  for (uint32_t worker = 3; worker < 6 && job.state.ranks.size() >= worker; ++worker) {
    job.Die(worker - 1);
    EXPECT_EQ(CountsOf(job.state).size, 3U);
    job.After(seconds(120));
    if (job.state.ranks.size() > worker) job.Start(worker);
  }
  ASSERT_GT(job.state.ranks.size(), 3U) << "some were replaced";
  EXPECT_EQ(CountsOf(job.state).size, 3U);
  EXPECT_LE(CountsOf(job.state).alive, 3U);
}

TEST(Membership, TheReasonOfAHostThatIsTriedAgainIsShownOnce) {
  Script job(Limits(3, 3, 3));
  job.List({{"a", 1}, {"b", 2}});
  job.On(AgentIsReady{0});
  job.Start(0);
  job.Join({0});
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const auto host = static_cast<uint32_t>(job.state.elastic.hosts.size() - 1);
    job.On(AgentLost{host, "refused " + std::to_string(attempt)});
    for (int i = 0; i < 90 && job.state.elastic.hosts.size() == host + 1; ++i)
      job.After(seconds(1));
  }
  ASSERT_GE(job.state.elastic.hosts.size(), 3U) << "it was tried again";
  job.told.clear();
  for (int i = 0; i < 60 && job.told.find("waiting for ranks") == std::string::npos; ++i)
    job.After(seconds(1));
  const size_t at = job.told.find("waiting for ranks");
  ASSERT_NE(at, std::string::npos) << job.told;
  const std::string line = job.told.substr(at, job.told.find('\n', at) - at);
  EXPECT_EQ(line.find("; host b: "), line.rfind("; host b: ")) << line;
}

TEST(Membership, TooManyFailuresEndTheJob) {
  JobPolicy limits = Limits(1, 3, 3);
  limits.failures = {0, std::nullopt};
  Script job(limits);
  job.Run(3);
  job.Die(1);
  EXPECT_TRUE(job.state.failure.has_value());
  EXPECT_THAT(job.told, HasSubstr("--max-failures"));
}

TEST(Membership, AWorkerThatCannotBeStartedCanBeOneFailureTooMany) {
  JobPolicy limits = Limits(1, 2, 2);
  limits.failures = {1, std::nullopt};
  Script job(limits);
  job.Run(2);
  job.Die(1);
  job.On(WorkerNotStarted{2, EAGAIN, "no process can be made"});
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_THAT(Report(job.state), HasSubstr("no process can be made"));
}

TEST(Membership, RanksThatDieTogetherAreOneFailure) {
  Script job(Limits(1, 4, 4));
  job.Run(4);
  job.Die(1);
  job.Die(2);
  EXPECT_THAT(job.told, HasSubstr("(1 of 10 failures)"));
  EXPECT_THAT(job.told, testing::Not(HasSubstr("(2 of 10 failures)")));
}

TEST(Membership, AHostWithManyRanksIsOneFailureEvenBeforeTheyJoin) {
  JobPolicy limits = Limits(1, 4, 4);
  limits.failures = {1, std::nullopt};
  Script job(limits);
  job.StartOnTwoHosts();
  job.On(AgentLost{1, "it is gone"});
  EXPECT_FALSE(job.state.failure.has_value());
}

TEST(Membership, TheResetLimitEndsTheJob) {
  JobPolicy limits = Limits(1, 2, 2);
  limits.reset_limit = 0;
  Script job(limits);
  job.Run(2);
  job.Die(1);
  job.Join({0});
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_EQ(job.state.failure->reason,
            "Horovod was shutdown because number of resets during elastic job exceeded limit: 0");
}

TEST(Membership, AScriptWithoutGenerationsIsStartedAgain) {
  Script job(Limits(1, 2, 2));
  job.List({{"a", 2}});
  job.On(AgentIsReady{0});
  for (uint32_t worker : {0, 1}) job.Start(worker);
  job.Exit(1, {false, 1});
  ASSERT_NE(job.Find<SignalWorker>(), nullptr);
  EXPECT_EQ(job.Find<SignalWorker>()->rank, 0U);
  job.Exit(0, {true, SIGTERM});
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  EXPECT_EQ(job.Find<StartMembers>()->restarts, 1U);
}

// The others wait for a rank that will not come, inside a library that knows nothing of hvdrun.
TEST(Membership, AScriptWithoutGenerationsIsStartedAgainWithoutALostHost) {
  Script job(Limits(2, 4, 4));
  job.StartOnTwoHosts();
  job.On(AgentLost{0, "its connection broke"});
  EXPECT_EQ(job.Find<SignalWorker>(), nullptr) << "they may still call hvd.init()";
  job.After(seconds(11));
  EXPECT_NE(job.Find<SignalWorker>(), nullptr);
  job.Exit(2, {true, SIGTERM});
  job.Exit(3, {true, SIGTERM});
  job.After(seconds(4));  // the lost host is tried again, and waited for
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  EXPECT_EQ(job.Find<StartMembers>()->restarts, 1U);
}

TEST(Membership, AScriptWithoutGenerationsIsStartedAgainWithoutAHostThatLeft) {
  Script job(Limits(2, 4, 4));
  job.StartOnTwoHosts();
  job.List({{"b", 2}});
  job.Exit(0, {true, SIGTERM});
  job.Exit(1, {true, SIGTERM});
  job.After(seconds(11));
  job.Exit(2, {true, SIGTERM});
  job.Exit(3, {true, SIGTERM});
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  EXPECT_EQ(job.Find<StartMembers>()->size, 2U);
}

// Workers 0 and 1 on "a" run a script that never calls hvd.init().
Script NativeJob(JobPolicy limits) {
  Script job(limits);
  job.List({{"a", 2}});
  job.On(AgentIsReady{0});
  for (uint32_t worker : {0, 1}) job.Start(worker);
  return job;
}

JobPolicy With(JobPolicy limits, RestartMode restart) {
  limits.restart = restart;
  return limits;
}

TEST(Membership, AScriptWithoutGenerationsGrowsByARestart) {
  Script job = NativeJob(Limits(2, 2, 3));
  job.After(seconds(50));
  job.List({{"a", 2}, {"b", 2}});
  job.On(AgentIsReady{1});
  EXPECT_EQ(job.Find<SignalWorker>(), nullptr) << "it may still call hvd.init()";
  EXPECT_EQ(NextTick(job.state), TimePoint() + seconds(60));
  job.After(seconds(10));
  EXPECT_THAT(job.told, HasSubstr("there are slots for more ranks; all ranks are started again"));
  for (uint32_t worker : {0, 1}) job.Exit(worker, {true, SIGTERM});
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  EXPECT_EQ(job.Find<StartMembers>()->size, 3U) << "no more than --max-np";
  EXPECT_EQ(job.Find<StartMembers>()->restarts, 1U);
  EXPECT_FALSE(job.state.failure.has_value());
  for (uint32_t worker : {2, 3, 4}) job.Start(worker);
  job.After(seconds(600));
  EXPECT_EQ(job.state.elastic.restarts, 1U) << "it has all that it may have";
}

TEST(Membership, AScriptWithoutGenerationsMovesToOtherHostsAtOnce) {
  Script job = NativeJob(Limits(2, 2, 2));
  job.After(seconds(60));
  job.List({{"b", 2}});
  EXPECT_EQ(job.Find<SignalWorker>(), nullptr) << "there is no other slot yet";
  job.On(AgentIsReady{1});
  EXPECT_THAT(job.told, HasSubstr("a rank has no slot any more; all ranks are started again"));
  for (uint32_t worker : {0, 1}) job.Exit(worker, {true, SIGTERM});
  EXPECT_EQ(job.state.plan.ranks[2].host, 1U);
  EXPECT_EQ(job.state.plan.ranks[3].host, 1U);
}

TEST(Membership, ARestartForSlotsWaitsForHostsOnTheirWay) {
  Script job = NativeJob(With(Limits(2, 2, 8), RestartMode::kInJob));
  job.List({{"a", 2}, {"b", 2}, {"c", 2}});
  job.On(AgentIsReady{1});
  EXPECT_EQ(job.Find<SignalWorker>(), nullptr);
  job.After(seconds(3));
  EXPECT_NE(job.Find<SignalWorker>(), nullptr);
}

TEST(Membership, AScriptThatFormsGenerationsIsNotRestartedForSlots) {
  Script job(Limits(1, 2, 4));
  job.Run(2);
  job.List({{"a", 3}});
  job.After(seconds(600));
  EXPECT_THAT(job.told, Not(HasSubstr("started again")));
}

TEST(Membership, ASettingHasAllWorkersStartedAgain) {
  Script job(With(Limits(1, 2, 2), RestartMode::kInJob));
  job.Run(2);
  job.Die(1);
  EXPECT_THAT(job.told, HasSubstr("; all ranks are started again (restart 1"));
  EXPECT_EQ(job.Find<StartMembers>(), nullptr) << "worker 0 has not ended";
  job.Exit(0, {true, SIGTERM});
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  EXPECT_EQ(job.Find<StartMembers>()->members.size(), 2U);
  for (uint32_t worker : {2, 3}) job.Start(worker);
  for (uint32_t worker : {2, 3}) job.Join({worker});
  EXPECT_THAT(job.Members(), ElementsAre(2, 3));
}

TEST(Membership, ASettingHasSurvivorsOfAnyScriptGoOn) {
  Script job = NativeJob(With(Limits(1, 2, 2), RestartMode::kInProcess));
  job.Exit(1, {true, SIGSEGV});
  EXPECT_THAT(job.told, HasSubstr("1 rank goes on without it"));
  EXPECT_EQ(job.Find<SignalWorker>(), nullptr);
  ASSERT_NE(job.Find<StartMembers>(), nullptr) << "it is replaced";
  EXPECT_EQ(job.Find<StartMembers>()->members.size(), 1U);
}

TEST(Membership, RestartsCountForTheResetLimit) {
  JobPolicy limits = With(Limits(2, 2, 2), RestartMode::kInJob);
  limits.reset_limit = 1;
  Script job = NativeJob(limits);
  job.Exit(1, {true, SIGSEGV});
  job.Exit(0, {true, SIGTERM});
  for (uint32_t worker : {2, 3}) job.Start(worker);
  job.Exit(3, {true, SIGSEGV});
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_THAT(job.state.failure->reason, HasSubstr("exceeded limit: 1"));
}

TEST(Membership, TooFewForTooLongEndsTheJob) {
  Script job(Limits(2, 2, 2));
  job.List({{"a", 1}});
  job.On(AgentIsReady{0});
  job.After(seconds(59));
  EXPECT_FALSE(job.state.failure.has_value());
  job.After(seconds(1));
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_THAT(job.state.failure->reason, HasSubstr("--elastic-timeout"));
}

TEST(Membership, WorkersThatWaitForANewOneThatHangsHaveALimit) {
  Script job(Limits(2, 2, 2));
  job.Run(2);
  job.Die(0);
  job.Die(1);
  for (uint32_t worker : {2, 3}) job.Start(worker);
  job.Join({2});
  job.After(seconds(99));
  EXPECT_FALSE(job.state.failure.has_value()) << "no slot is missing";
  job.After(seconds(1));
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_THAT(
      job.state.failure->reason,
      AllOf(HasSubstr("ranks have not called hvd.init() within the 100 s of --init-timeout"),
            HasSubstr("rank 1 on host a (pid 103) has not called hvd.init() again")));
}

TEST(Membership, AHostWhoseWorkerFailedRestsWhereTheUserNamedARange) {
  JobPolicy limits = Limits(1, 2, 2);
  limits.cooldown = CooldownRange{seconds(10), seconds(10)};
  Script job(limits);
  job.List({{"a", 2}, {"b", 1}});
  job.On(AgentIsReady{0});
  job.On(AgentIsReady{1});
  for (uint32_t worker : {0, 1}) job.Start(worker);
  job.Join({0, 1});
  job.Die(1);  // on "a", like worker 0
  ASSERT_EQ(job.state.ranks.size(), 3U);
  EXPECT_EQ(job.state.plan.ranks[2].host, 1U);
  job.Start(2);
  job.Join({0, 2});
  job.Die(2);  // on "b": no host is left
  job.Join({0});
  job.After(seconds(9));
  EXPECT_EQ(job.state.ranks.size(), 3U);
  job.After(seconds(1));
  EXPECT_EQ(job.state.ranks.size(), 4U);
}

TEST(Membership, SlowRanksHaveALimitOfTheirOwn) {
  JobPolicy limits = Limits(2, 2, 2);
  limits.elastic_timeout = seconds(2);
  Script job(limits);
  job.StartTwoOf(2);
  job.Join({0});
  job.After(seconds(6));
  EXPECT_FALSE(job.state.failure.has_value());
  job.Join({1});
  EXPECT_THAT(job.Members(), ElementsAre(0, 1));
  // A slot that is missing still counts by the other limit.
  job.List({{"a", 1}});
  job.Die(1);
  job.Join({0});
  job.After(seconds(2));
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_THAT(job.state.failure->reason, HasSubstr("1 rank is there, 2 are needed"));
}

TEST(Membership, TheFirstCauseIsNamedWhereRanksAreWaitedForInVain) {
  Script job(Limits(2, 2, 2));
  job.Run(2);
  job.List({{"a", 1}});
  job.On(RankLost{1, 1, job.state.ranks[1].in_generation, 1, "it died"});
  job.Exit(1, {false, 1}, "Traceback\n  File x\nTimeoutError: the data did not come\n");
  job.Join({0});
  job.After(seconds(60));
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_THAT(
      job.state.failure->reason,
      HasSubstr("before that, rank 1 on host a (pid 101) failed: exit code 1, and its last line "
                "on stderr was 'TimeoutError: the data did not come'"));
}

TEST(Membership, TimeWhilePausedDoesNotCount) {
  Script job(Limits(2, 2, 2));
  job.Run(2);
  job.state.elastic.ledger.NoteHostFailure("b", job.clock.Now());
  const TimePoint usable = job.state.elastic.ledger.UsableFrom("b");
  job.Die(0);
  job.Join({1});
  job.After(seconds(99));
  job.On(Paused{});
  EXPECT_EQ(NextTick(job.state), std::nullopt);
  job.clock.Advance(seconds(600));
  job.On(Tick{});
  EXPECT_FALSE(job.state.failure.has_value());
  job.On(HostsListed{{}, "the script ended with exit code 1"});  // the first that it hears of
  EXPECT_FALSE(job.state.failure.has_value());
  EXPECT_EQ(job.state.elastic.ledger.UsableFrom("b"), usable + seconds(600));
  job.After(std::chrono::milliseconds(999));
  EXPECT_FALSE(job.state.failure.has_value());
  job.After(std::chrono::milliseconds(1));
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_THAT(job.state.failure->reason, HasSubstr("--init-timeout"));
}

TEST(Membership, AFirstAnswerMayComeLate) {
  Script job(Limits(1, 1, 1));
  job.On(HostsListed{{}, "the script ended with exit code 1"});
  EXPECT_FALSE(job.state.failure.has_value());
  EXPECT_THAT(job.told, HasSubstr("the script ended with exit code 1; it is asked again until"));
  job.After(seconds(59));
  EXPECT_FALSE(job.state.failure.has_value());
  job.Run(1);
  EXPECT_THAT(job.Members(), ElementsAre(0));
  job.After(seconds(600));
  EXPECT_FALSE(job.state.failure.has_value());
}

TEST(Membership, ASourceWithoutAnyAnswerEndsTheJobAfterElasticTimeout) {
  Script job(Limits(1, 1, 1));
  job.On(HostsListed{{}, "the script ended with exit code 1"});
  job.After(seconds(60));
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_THAT(job.state.failure->reason, HasSubstr("the script ended with exit code 1"));
}

TEST(Membership, AScriptThatIsNotThereEndsTheJobAtOnceUnlessItWasThere) {
  Script job(Limits(1, 1, 1));
  job.On(HostsListed{{}, "the script ended with exit code 127", true});
  ASSERT_TRUE(job.state.failure.has_value());
  EXPECT_EQ(job.state.failure->reason, "the script ended with exit code 127");

  Script later(Limits(1, 1, 1));
  later.Run(1);
  later.On(HostsListed{{}, "the script ended with exit code 127", true});
  EXPECT_FALSE(later.state.failure.has_value());
}

TEST(Membership, TheGraceOfAScriptWithoutGenerationsIsShiftedByAPause) {
  Script job(Limits(1, 4, 4));
  job.StartOnTwoHosts();
  job.On(AgentLost{1, "it broke"});
  job.After(seconds(9));
  job.On(Paused{});
  job.clock.Advance(seconds(600));
  job.On(Resumed{});
  EXPECT_THAT(job.told, Not(HasSubstr("started again")));
  job.After(seconds(1));
  EXPECT_THAT(job.told, HasSubstr("started again"));
}

TEST(Membership, TimeInWhichHvdrunWasStoppedDoesNotCount) {
  Script job(Limits(2, 2, 2));
  job.Run(2);
  job.Die(0);
  job.Join({1});
  job.clock.Advance(seconds(600));
  NoteHeldUp(job.state, seconds(590));
  job.On(Tick{});
  EXPECT_FALSE(job.state.failure.has_value());
  job.After(seconds(90));
  EXPECT_TRUE(job.state.failure.has_value());
}

TEST(Membership, RanksThatSaidGoodbyeAreNotMissing) {
  Script job(Limits(2, 2, 2));
  job.Run(2);
  for (uint32_t worker : {0, 1}) job.On(RankLeft{worker, 1, 1, false});
  job.After(seconds(600));
  EXPECT_FALSE(job.state.failure.has_value()) << "they save something, which takes its time";
  for (uint32_t worker : {0, 1}) job.Exit(worker, {false, 0});
  job.On(AgentFinished{0});
  EXPECT_EQ(ExitCode(job.state), 0);
}

TEST(Membership, ARankThatTrainsOnAfterAnothersGoodbyeIsNotMissing) {
  Script job(Limits(2, 2, 2));
  job.Run(2);
  job.On(RankLeft{1, 1, 1, false});
  job.After(seconds(600));
  EXPECT_FALSE(job.state.failure.has_value());
}

TEST(Membership, HostsOnTheirWayAreCutWhenTheJobIsDone) {
  Script job(Limits(1, 2, 4));
  job.Run(2);
  job.List({{"a", 2}, {"b", 2}});
  for (uint32_t worker : {0, 1}) job.On(RankLeft{worker, 1, 1, false});
  job.Exit(0, {false, 0});
  job.Exit(1, {false, 0});
  ASSERT_NE(job.Find<CutHost>(), nullptr);
  EXPECT_EQ(job.Find<CutHost>()->host, 1U);
}

TEST(Membership, SparesAreStartedInTheStepInWhichAGenerationBegins) {
  Script job(LimitsWithASpare(1, 2, 2));
  job.StartTwoOf(4);
  job.Join({0});
  EXPECT_EQ(job.Find<StartMembers>(), nullptr);
  job.Join({1});
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  EXPECT_EQ(job.Find<StartMembers>()->members.at(0).worker, 2U);
  job.Start(2);
  job.Join({2});
  job.Die(0);
  job.Join({1});  // the spare takes the place, and the next spare is started
  ASSERT_NE(job.Find<StartMembers>(), nullptr);
  EXPECT_EQ(job.Find<StartMembers>()->members.at(0).worker, 3U);
}

TEST(Membership, TheMemoryOfASpareIsTold) {
  Script job(LimitsWithASpare(1, 2, 2));
  job.StartTwoOf(3);
  for (uint32_t worker : {0, 1}) job.Join({worker});
  job.After(seconds(1));
  job.Start(2);
  job.Join({2});
  ASSERT_NE(job.Find<AskMemory>(), nullptr);
  EXPECT_EQ(job.Find<AskMemory>()->rank, 2U);
  job.On(MemoryReply{2, 312'400'000});
  EXPECT_THAT(job.told, HasSubstr("a spare is ready on host a (pid 102); it holds 312 MB"));
  EXPECT_EQ(job.Find<AskMemory>(), nullptr) << "once";
}

TEST(Membership, TheMemoryOfASpareThatHasAPlaceByThenIsNotTold) {
  Script job(LimitsWithASpare(1, 2, 2));
  job.StartTwoOf(3);
  job.Join({0, 1});
  job.After(seconds(1));
  job.Start(2);
  job.Join({2});
  job.Die(1);
  job.Join({0});
  EXPECT_THAT(job.Members(), ElementsAre(0, 2));
  job.On(MemoryReply{2, 312'400'000});
  EXPECT_THAT(job.told, Not(HasSubstr("a spare is ready")));
}

TEST(Membership, ARankThatIsLostOnceTheJobIsAskedToStopIsNoFailure) {
  JobPolicy limits = Limits(1, 2, 2);
  limits.failures = {0, std::nullopt};
  for (const bool stop : {false, true}) {
    Script job(limits);
    job.Run(2);
    if (stop) job.On(StopAsked{SIGTERM, {}});
    job.Die(1);
    EXPECT_EQ(job.state.failure.has_value(), !stop);
  }
}

TEST(Membership, AStopIsAfterAStep) {
  Script job(Limits(1, 2, 2));
  job.Run(2);
  job.On(StopAsked{SIGTERM, {}});
  ASSERT_NE(job.Find<HoldCommits>(), nullptr);
  job.On(CommitsHeldBy{0, {1, 4}});
  ASSERT_NE(job.Find<ActAtCommit>(), nullptr);
  EXPECT_EQ(job.Find<ActAtCommit>()->commit, 5U);
  EXPECT_EQ(job.Find<ActAtCommit>()->update, static_cast<uint32_t>(kUpdateStop));
  for (uint32_t worker : {0, 1}) job.Exit(worker, {false, kStoppedExitCode});
  job.On(AgentFinished{0});
  EXPECT_EQ(job.state.phase, JobPhase::kDone);
  EXPECT_EQ(ExitCode(job.state), 75);
}

TEST(Membership, AnAgentThatIsAskedStopsTheJobAfterAStep) {
  Script job(Limits(1, 2, 2));
  job.Run(2);
  job.On(StopAsked{SIGUSR1, {}, 0});
  EXPECT_THAT(job.told, HasSubstr("the agent on host a was asked to stop by signal 10"));
  EXPECT_NE(job.Find<HoldCommits>(), nullptr);
  job.On(StopAsked{SIGTERM, {}, 0});
  EXPECT_TRUE(job.last.empty()) << "it stops already";
}

TEST(Membership, AnAgentThatIsAskedWhileNoRankTrainsIsLost) {
  Script job(Limits(1, 4, 4));
  job.StartOnTwoHosts();
  job.On(StopAsked{SIGTERM, {}, 1});
  EXPECT_NE(job.Find<CutHost>(), nullptr);
  EXPECT_FALSE(job.state.failure.has_value()) << "the other host goes on";
  EXPECT_THAT(job.told, HasSubstr("host b was lost: its agent was asked to end by signal 15"));
}

TEST(Membership, AfterTheFirstEndWithZeroNobodyIsAdded) {
  Script job(Limits(1, 2, 4));
  job.Run(2);
  job.On(RankLeft{0, 1, 1});
  job.Exit(0, {false, 0});
  job.List({{"a", 2}, {"b", 2}});
  EXPECT_EQ(job.Find<OpenHost>(), nullptr);
  job.Exit(1, {false, 0});
  job.On(AgentFinished{0});
  EXPECT_EQ(job.state.phase, JobPhase::kDone);
  EXPECT_EQ(ExitCode(job.state), 0);
}

TEST(Membership, AnUnusedWorkerThatIgnoresSigtermDoesNotHoldUpTheEnd) {
  Script job(Limits(1, 1, 2));
  job.Run(1);
  job.List({{"a", 2}});
  job.Start(1);
  job.On(RankLeft{0, 1, 1});
  job.Exit(0, {false, 0});
  ASSERT_NE(job.Find<SignalWorker>(), nullptr);
  EXPECT_EQ(job.Find<SignalWorker>()->signal, SIGTERM);
  job.After(JobOptions{}.terminate_grace);
  ASSERT_NE(job.Find<SignalWorker>(), nullptr);
  EXPECT_EQ(job.Find<SignalWorker>()->signal, SIGKILL);
  EXPECT_GT(NextTick(job.state).value_or(TimePoint::max()), job.clock.Now());
}

TEST(Membership, AHostLostWhileItsWorkersStartDoesNotEndTheOthers) {
  Script job(Limits(1, 2, 2));
  job.List({{"a", 1}, {"b", 1}});
  job.On(AgentIsReady{0});
  job.On(AgentIsReady{1});
  job.Start(0);
  job.Join({0});
  job.On(AgentLost{1, "it is gone"});
  job.List({{"a", 1}});
  job.After(JobOptions{}.start_timeout);
  EXPECT_EQ(job.state.phase, JobPhase::kRunning);
  EXPECT_FALSE(job.state.failure.has_value());
}

}  // namespace
}  // namespace hvd
