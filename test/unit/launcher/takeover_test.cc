// What a driver leaves to the one that takes over, and the state to which that brings its job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "launcher/driver/takeover/adoption.h"
#include "launcher/driver/takeover/takeover_record.h"
#include "launcher/job/report/job_result.h"
#include "launcher/job/report/report.h"

namespace hvd {
namespace {

using std::chrono::seconds;

const TimePoint kTakenOverAt = TimePoint(seconds(1000));

// Two hosts with two ranks each.
TakeoverRecord ARecord() {
  TakeoverRecord record;
  record.pid = 7;
  record.key = "key";
  record.begun_ns = 1000;
  const Plan plan = *MakePlan({{"a", 2}, {"b", 2}}, 4);
  record.host_names = plan.hosts;
  record.ranks = plan.ranks;
  record.hosts = {{{"/hvdrun", "there"}, 1, {"10.0.0.1"}}, {{"/hvdrun", "here"}, 1, {}}};
  return record;
}

HostSnapshot SnapshotOf(uint32_t host, uint64_t generation, bool in_it = true) {
  HostSnapshot snapshot{1, generation, {}, {}, {}, {}};
  for (uint32_t rank = 2 * host; rank < 2 * host + 2; ++rank)
    snapshot.workers.push_back({rank, static_cast<int32_t>(100 + rank), 0, in_it ? generation : 0});
  return snapshot;
}

struct Adopter {
  explicit Adopter(const TakeoverRecord& record) : state(PlanOf(record), {}) {
    for (HostClock& clock : state.clocks) clock = HostClock::Ours();
  }
  void Adopt(const TakeoverRecord& record, std::vector<std::optional<HostSnapshot>> snapshots) {
    for (const JobEvent& event : AdoptionEvents(record, snapshots)) On(event);
  }
  void On(const JobEvent& event) {
    Decision decision = Step(state, event, kTakenOverAt);
    for (JobAction& action : decision.actions) actions.push_back(std::move(action));
  }
  template <typename Action>
  size_t Count() const {
    return static_cast<size_t>(std::ranges::count_if(
        actions, [](const JobAction& a) { return std::holds_alternative<Action>(a); }));
  }
  JobState state;
  std::vector<JobAction> actions;
};

WorkerExited ExitOf(uint32_t rank, int code, int64_t at = 5) {
  return {rank, static_cast<int32_t>(100 + rank), {false, code}, at, "", false, 0};
}

TEST(TakeoverRecord, IsReadAsItWasWritten) {
  TakeoverRecord record = ARecord();
  record.interrupts = {2, 15};
  record.report = "report";
  const std::string bytes = EncodeTakeoverRecord(record);
  const auto read = DecodeTakeoverRecord(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(EncodeTakeoverRecord(*read), bytes);
  EXPECT_EQ(read->ranks, record.ranks);
  EXPECT_EQ(read->hosts[0].there.resume_address, "there");
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(DecodeTakeoverRecord(bytes.substr(0, length))) << length;
  EXPECT_FALSE(DecodeTakeoverRecord(bytes + "x"));
}

TEST(Adoption, RanksWithoutAWorldRunOn) {
  Adopter job(ARecord());
  job.Adopt(ARecord(), {SnapshotOf(0, 0), SnapshotOf(1, 0)});
  EXPECT_EQ(job.state.phase, JobPhase::kRunning);
  EXPECT_EQ(job.state.ranks[3].pid, 103);
  EXPECT_EQ(job.Count<StartMembers>(), 0U);
  for (uint32_t rank = 0; rank < 4; ++rank) job.On(ExitOf(rank, 0));
  EXPECT_EQ(job.Count<FinishJob>(), 1U);
  EXPECT_EQ(ExitCode(job.state), 0);
}

TEST(Adoption, TheLastWorldGoesOnWithItsNumber) {
  Adopter job(ARecord());
  job.Adopt(ARecord(), {SnapshotOf(0, 3), SnapshotOf(1, 3)});
  EXPECT_EQ(job.state.generation, 3U);
  EXPECT_EQ(job.state.ranks[0].in_generation, 3U);
  ASSERT_EQ(job.Count<BeginWorld>(), 1U) << "an agent may not have heard of it";
  for (uint32_t rank = 0; rank < 4; ++rank) job.On(RankLeft{rank, 3, 5, false});
  for (uint32_t rank = 0; rank < 4; ++rank) job.On(RankJoined{rank});
  EXPECT_EQ(job.state.generation, 4U);
}

TEST(Adoption, AWorldThatOneHostHadNotHeardOfBeginsThereToo) {
  Adopter job(ARecord());
  HostSnapshot late = SnapshotOf(1, 2, /*in_it=*/false);
  for (WorkerSnapshot& worker : late.workers) worker.waiting = 1;
  job.Adopt(ARecord(), {SnapshotOf(0, 3), late});
  EXPECT_EQ(job.state.generation, 3U);
  EXPECT_EQ(job.Count<BeginWorld>(), 1U);
}

TEST(Adoption, RanksThatWaitForTheNextWorldWait) {
  Adopter job(ARecord());
  HostSnapshot first = SnapshotOf(0, 1, /*in_it=*/false);
  first.left = {{0, 1, 5, false}, {1, 1, 6, false}};
  for (WorkerSnapshot& worker : first.workers) worker.waiting = 1;
  job.Adopt(ARecord(), {first, SnapshotOf(1, 1)});
  EXPECT_TRUE(job.state.ranks[0].waiting() && job.state.ranks[1].waiting());
  EXPECT_EQ(job.state.generation, 1U);
  for (uint32_t rank : {2, 3}) {
    job.On(RankLeft{rank, 1, 7, false});
    job.On(RankJoined{rank});
  }
  EXPECT_EQ(job.state.generation, 2U);
}

TEST(Adoption, TheFirstThatFailedMeanwhileIsTheCause) {
  Adopter job(ARecord());
  HostSnapshot first = SnapshotOf(0, 1), second = SnapshotOf(1, 1);
  first.lost = {{0, 100, 1, 20, "rank 0 died", "", true}};
  first.exited = {ExitOf(0, 1, 21)};
  second.lost = {{3, 103, 1, 10, "rank 3 died", "", false}};
  second.exited = {ExitOf(3, 4, 11)};
  job.Adopt(ARecord(), {first, second});
  for (uint32_t rank : {1, 2}) {
    job.On(RankLost{rank, 0, 1, 30, "consequence", "", true});
    job.On(ExitOf(rank, 1, 31));
  }
  EXPECT_EQ(ExitCode(job.state), 4);
}

TEST(Adoption, WhatTheJobWasAskedAndWhyItEndsGoesOn) {
  TakeoverRecord record = ARecord();
  record.interrupts = {SIGINT};
  Adopter stopped(record);
  stopped.Adopt(record, {SnapshotOf(0, 0), SnapshotOf(1, 0)});
  EXPECT_TRUE(stopped.state.interrupting);
  for (uint32_t rank = 0; rank < 4; ++rank) stopped.On(ExitOf(rank, 0));
  EXPECT_EQ(ExitCode(stopped.state), 130);

  record = ARecord();
  JobFailure failure;
  failure.kind = JobFailure::Kind::kTimeout;
  failure.exit_code = 124;
  SetFailure(record, failure);
  Adopter late(record);
  late.Adopt(record, {SnapshotOf(0, 0), SnapshotOf(1, 0)});
  ASSERT_TRUE(late.state.failure);
  EXPECT_EQ(late.state.failure->kind, JobFailure::Kind::kTimeout);
  EXPECT_GE(late.Count<SignalWorkers>(), 1U);
}

TEST(Adoption, AnAgentWithoutItsPartEndsTheJob) {
  Adopter job(ARecord());
  HostSnapshot nothing;
  job.Adopt(ARecord(), {SnapshotOf(0, 0), nothing});
  ASSERT_TRUE(job.state.failure);
  EXPECT_THAT(job.state.failure->reason, ::testing::HasSubstr("before it had started the job"));
}

TEST(Adoption, GathersTheSnapshotsAndWhatFollowsThem) {
  Adoption adoption(ARecord());
  adoption.Keep(0, ToDriver(RankJoined{0}));
  adoption.Add(0, SnapshotOf(0, 0));
  adoption.Keep(0, ToDriver(RankJoined{1}));
  EXPECT_FALSE(adoption.complete());
  adoption.Lose(1, "its agent is gone");
  EXPECT_TRUE(adoption.complete());
  const auto later = adoption.PopMessages();
  ASSERT_EQ(later.size(), 1U) << "what came before the snapshot is part of it";
  EXPECT_EQ(std::get<RankJoined>(later[0].second).rank, 1U);
  EXPECT_EQ(adoption.lost()[0].second, "its agent is gone");
}

TEST(Snapshot, OfRanksOfAnotherHostIsRefused) {
  const Plan plan = PlanOf(ARecord());
  EXPECT_TRUE(CheckSnapshot(plan, 1, SnapshotOf(1, 1)).ok());
  EXPECT_FALSE(CheckSnapshot(plan, 0, SnapshotOf(1, 1)).ok());
  HostSnapshot beyond = SnapshotOf(0, 1);
  beyond.exited = {ExitOf(9, 0)};
  EXPECT_FALSE(CheckSnapshot(plan, 0, beyond).ok());
}

}  // namespace
}  // namespace hvd
