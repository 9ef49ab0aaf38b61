// An elastic job from the record that its former hvdrun has left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "launcher/driver/takeover/elastic_adoption.h"
#include "launcher/driver/takeover/job_record.h"
#include "launcher/job/job.h"

namespace hvd {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

JobPolicy TakenOverPolicy() {
  JobPolicy policy = ElasticPolicy(1, 2, 2);
  policy.elastic_timeout = policy.init_timeout = seconds(60);
  policy.failures = {10, std::nullopt};
  return policy;
}

// A job of two hosts with one rank each.
struct ElasticJob {
  ElasticJob() : state(Plan{}, JobOptions{}, {}, TakenOverPolicy(), 1) {}

  void On(const JobEvent& event) {
    Decision decision = Step(state, event, now);
    actions = std::move(decision.actions);
    for (const JobAction& action : actions) {
      if (const auto* notice = std::get_if<NotifyUser>(&action)) told += notice->sentence + "\n";
    }
  }
  void Open() {
    On(Begun{});
    On(HostsListed{{{"a", 1}, {"b", 1}}, {}});
    On(AgentIsReady{0, {}});
    On(AgentIsReady{1, {}});
  }
  void Train() {
    Open();
    for (uint32_t w : {0, 1}) On(WorkerStarted{w, PidOf(w)});
    for (uint32_t w : {0, 1}) On(RankJoined{w});
    ASSERT_EQ(state.generation, 1U);
  }
  ElasticJob TakenOver() const {
    ElasticJob next;
    next.now = now + seconds(1);
    EXPECT_TRUE(DecodeJobState(EncodeJobState(state), next.state, next.now));
    return next;
  }
  static int32_t PidOf(uint32_t worker) { return static_cast<int32_t>(100 + worker); }
  template <typename Action>
  static std::vector<Action> Of(const std::vector<JobAction>& actions) {
    std::vector<Action> found;
    for (const JobAction& action : actions) {
      if (const auto* one = std::get_if<Action>(&action)) found.push_back(*one);
    }
    return found;
  }
  std::vector<JobAction> Unfinished(const HostSnapshots& snapshots) const {
    return UnfinishedActions(state, snapshots, now);
  }

  TimePoint now{seconds(1000)};
  JobState state;
  std::vector<JobAction> actions;
  std::string told;
};

// Of a host with one worker, of the same number.
HostSnapshot AgentOf(uint32_t worker, uint64_t generation, bool waits = false) {
  HostSnapshot snapshot;
  snapshot.started = 1;
  snapshot.generation = generation;
  snapshot.workers = {
      {worker, ElasticJob::PidOf(worker), waits ? uint8_t{1} : uint8_t{0}, waits ? 0 : generation}};
  return snapshot;
}

TEST(JobRecord, IsReadAsItWasWritten) {
  ElasticJob job;
  job.Train();
  job.On(RankLost{1, 101, 1, 5, "it died"});
  job.On(WorkerExited{1, 101, {true, SIGKILL}, 6, "words", false, 7});
  job.On(StopAsked{SIGTERM, {}});
  job.state.elastic.source_trouble = "trouble";
  const std::string bytes = EncodeJobState(job.state);
  const ElasticJob next = job.TakenOver();
  EXPECT_EQ(EncodeJobState(next.state), bytes);
  EXPECT_EQ(next.state.counts.ended, job.state.counts.ended);
  EXPECT_EQ(next.state.counts.begun, job.state.counts.begun);
  for (size_t length = 0; length < bytes.size(); ++length) {
    ElasticJob other;
    EXPECT_FALSE(DecodeJobState(bytes.substr(0, length), other.state, other.now)) << length;
  }
  ElasticJob other;
  EXPECT_FALSE(DecodeJobState(bytes + "x", other.state, other.now));
}

TEST(ElasticAdoption, AGenerationGoesOn) {
  ElasticJob before;
  before.Train();
  ElasticJob job = before.TakenOver();
  const HostSnapshots agents{AgentOf(0, 1), AgentOf(1, 1)};
  EXPECT_TRUE(MissedEvents(job.state, agents).empty());
  const auto actions = job.Unfinished(agents);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(std::get<BeginWorld>(actions[0]).number, 1U) << "an agent may not have heard of it";
  for (uint32_t w : {0, 1}) job.On(RankLeft{w, 1, 5, false});
  for (uint32_t w : {0, 1}) job.On(WorkerExited{w, ElasticJob::PidOf(w), {false, 0}, 6});
  EXPECT_EQ(ElasticJob::Of<FinishJob>(job.actions).size(), 1U);
}

TEST(ElasticAdoption, AGenerationThatAnAgentHasNotHeardOfBegins) {
  ElasticJob before;
  before.Train();
  const ElasticJob job = before.TakenOver();
  const HostSnapshots agents{AgentOf(0, 1), AgentOf(1, 0, /*waits=*/true)};
  EXPECT_TRUE(MissedEvents(job.state, agents).empty()) << "it does not wait for the next one";
  EXPECT_EQ(ElasticJob::Of<BeginWorld>(job.Unfinished(agents)).size(), 1U);
}

TEST(ElasticAdoption, AWorkerThatItsAgentDoesNotHaveIsStarted) {
  ElasticJob before;
  before.Open();
  ASSERT_EQ(ElasticJob::Of<StartMembers>(before.actions).size(), 1U);
  const StartMembers first = ElasticJob::Of<StartMembers>(before.actions)[0];
  const ElasticJob job = before.TakenOver();
  HostSnapshot empty;
  const auto starts = ElasticJob::Of<StartMembers>(job.Unfinished({AgentOf(0, 0), empty}));
  ASSERT_EQ(starts.size(), 1U);
  ASSERT_EQ(starts[0].members.size(), 1U);
  EXPECT_EQ(starts[0].members[0].worker, first.members[1].worker);
  EXPECT_EQ(starts[0].members[0].place, first.members[1].place);
  EXPECT_EQ(starts[0].size, 2U);
  const auto events = MissedEvents(job.state, {AgentOf(0, 0), empty});
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<WorkerStarted>(events[0]).pid, 100);
}

TEST(ElasticAdoption, AWorkerThatDiedMeanwhileIsReplaced) {
  ElasticJob before;
  before.Train();
  ElasticJob job = before.TakenOver();
  HostSnapshot lost = AgentOf(1, 1);
  lost.workers[0].generation = 0;
  lost.lost = {{1, 101, 1, 5, "it died"}};
  lost.exited = {{1, 101, {true, SIGKILL}, 6}};
  bool broken = false, started = false;
  for (const JobEvent& event : MissedEvents(job.state, {AgentOf(0, 1), lost})) {
    job.On(event);
    broken = broken || !ElasticJob::Of<BreakGeneration>(job.actions).empty();
    started = started || !ElasticJob::Of<StartMembers>(job.actions).empty();
  }
  EXPECT_TRUE(broken && started);
  EXPECT_THAT(job.told, HasSubstr("1 of 10 failures"));
  ElasticJob again = job.TakenOver();
  EXPECT_EQ(ElasticJob::Of<BreakGeneration>(again.Unfinished({AgentOf(0, 1), lost})).size(), 1U);
  EXPECT_TRUE(MissedEvents(again.state, {AgentOf(0, 1), lost}).empty()) << "it is known by now";
}

TEST(ElasticAdoption, AHostThatWasOnItsWayIsNoFailure) {
  ElasticJob before;
  before.On(Begun{});
  before.On(HostsListed{{{"a", 1}, {"b", 1}}, {}});
  before.On(AgentIsReady{0, {}});
  ElasticJob job = before.TakenOver();
  ForgetHosts(job.state, {true, false});
  job.On(HostsListed{{{"a", 1}, {"b", 1}}, {}});
  const auto opened = ElasticJob::Of<OpenHost>(job.actions);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].host, 2U);
  EXPECT_EQ(opened[0].listing.host, "b");
  EXPECT_EQ(job.told, "");
}

TEST(ElasticAdoption, WhatWasOnItsWayToTheRanksIsSentAgain) {
  ElasticJob before;
  before.Train();
  before.On(StopAsked{SIGTERM, seconds(5)});
  ASSERT_EQ(ElasticJob::Of<HoldCommits>(before.actions).size(), 1U);
  const HostSnapshots agents{AgentOf(0, 1), AgentOf(1, 1)};
  EXPECT_EQ(ElasticJob::Of<HoldCommits>(before.TakenOver().Unfinished(agents)).size(), 1U);
  before.On(CommitsHeldBy{0, {1, 4}});
  before.On(CommitsHeldBy{1, {1, 6}});
  const auto acts = ElasticJob::Of<ActAtCommit>(before.TakenOver().Unfinished(agents));
  ASSERT_EQ(acts.size(), 1U);
  EXPECT_EQ(acts[0].commit, 7U);
  EXPECT_EQ(acts[0].grace_ms, 5000U);
  before.On(Interrupted{SIGTERM});
  const auto signals = ElasticJob::Of<SignalWorkers>(before.TakenOver().Unfinished(agents));
  ASSERT_EQ(signals.size(), 1U);
  EXPECT_EQ(signals[0].signal, SIGTERM);
}

}  // namespace
}  // namespace hvd
