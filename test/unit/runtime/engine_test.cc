// The decisions of the engine by itself; the rest of it is in test/contract/runtime.
#include "runtime/core/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/record_memory.h"
#include "runtime/bootstrap/solo_bootstrap.h"
#include "test/fakes/world_of_threads.h"

namespace hvd::test {
namespace {

const std::vector<int64_t> kThree{3};

TEST(WaitPolicy, SpinsOnlyWhereEveryRankHasACore) {
  for (auto [ranks, cores] : {std::pair{1u, 1u}, {2u, 2u}, {4u, 64u}}) {
    EXPECT_GT(ChooseWaitPolicy(ranks, cores).spins, 0u) << ranks << " on " << cores;
  }
  for (auto [ranks, cores] : {std::pair{2u, 1u}, {4u, 2u}, {65u, 64u}, {1u, 0u}}) {
    WaitPolicy policy = ChooseWaitPolicy(ranks, cores);
    EXPECT_EQ(policy.spins, 0u) << ranks << " on " << cores;
    EXPECT_GT(policy.yields, 0u) << "a core that is given away is given to a peer";
  }
}

TEST(SoloBootstrap, MakesAWorldOfOneAgainAndAgain) {
  SoloBootstrap bootstrap;
  for (uint64_t generation = 1; generation <= 3; ++generation) {
    Result<World> world = bootstrap.Join(Duration(0));
    ASSERT_TRUE(world.ok()) << world.status().message();
    EXPECT_EQ(world->generation, generation);
    EXPECT_EQ(world->size, 1u);
    EXPECT_EQ(world->page.header().generation, generation);
    EXPECT_FALSE(bootstrap.watched());
    bootstrap.Leave(generation, SteadyNow());
  }
}

TEST(Handles, AreForgottenOnceAndNeverMistaken) {
  WorldOfThreads world(Transport::kInproc, 1);
  std::vector<float> x(3, 2);
  auto first = world.engine(0).Submit(AllreduceOf("x", x, x, DType::kFloat32, {3}));
  ASSERT_TRUE(first.ok());
  EXPECT_NE(*first, 0u);
  EXPECT_TRUE(world.engine(0).Wait(*first, Duration(-1)).ok());
  EXPECT_EQ(world.engine(0).Wait(*first, Duration(-1)).code(), Code::kInvalidArgument);
  auto second = world.engine(0).Submit(AllreduceOf("x", x, x, DType::kFloat32, {3}));
  ASSERT_TRUE(second.ok());
  EXPECT_NE(*second, *first) << "a slot used again is another handle";
  EXPECT_EQ(world.engine(0).Poll(*first).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(world.engine(0).Poll(0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(world.engine(0).Poll(~0ull).status().code(), Code::kInvalidArgument);
}

TEST(Handles, OfAnEarlierWorldAreNeverThoseOfThisOne) {
  std::vector<float> x(3, 2);
  const RequestSpec spec = AllreduceOf("x", x, x, DType::kFloat32, kThree);
  WorldOfThreads before(Transport::kInproc, 1);
  auto old = before.engine(0).Submit(spec);
  ASSERT_TRUE(old.ok());
  WorldOfThreads world(Transport::kInproc, 1, [&](uint32_t) {
    EngineOptions options;
    options.handles_given = before.engine(0).handles_given();
    return options;
  });
  auto fresh = world.engine(0).Submit(spec);
  ASSERT_TRUE(fresh.ok());
  EXPECT_NE(*fresh, *old);
  EXPECT_TRUE(*world.engine(0).Poll(*old));
  const Status over = world.engine(0).Wait(*old, Duration(-1));
  EXPECT_EQ(over.code(), Code::kAborted);
  EXPECT_NE(over.message().find("of a world that was shut down"), std::string::npos);
  EXPECT_TRUE(world.engine(0).Wait(*fresh, Duration(-1)).ok());
}

TEST(Poll, SaysHowThingsStoodWhenItWasCalled) {
  WorldOfThreads world(Transport::kInproc, 1);
  Engine& engine = world.engine(0);
  std::vector<float> x(3, 2);
  auto handle = engine.Submit(AllreduceOf("x", x, x, DType::kFloat32, {3}));
  ASSERT_TRUE(handle.ok());
  EXPECT_FALSE(*engine.Poll(*handle)) << "finished inside the call that submitted it";
  EXPECT_TRUE(*engine.Poll(*handle));
  EXPECT_TRUE(engine.Submit(AllreduceOf("x", x, x, DType::kFloat32, {3})).ok())
      << "the name is free after a poll that said so";
  EXPECT_TRUE(engine.Wait(*handle, Duration(0)).ok());
}

// The call that finds the duplicate is the one that frees the names of operations that have
// finished meanwhile.
TEST(Names, AreKeptUntilTheNextCallHasLookedForDuplicates) {
  WorldOfThreads world(Transport::kInproc, 1);
  Engine& engine = world.engine(0);
  std::vector<float> x(3, 2), y(3, 2);
  const RequestSpec spec = AllreduceOf("x", x, x, DType::kFloat32, kThree);
  auto first = engine.Submit(spec);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(engine.Submit(spec).status().code(), Code::kDuplicateName);
  auto second = engine.Submit(spec);
  ASSERT_TRUE(second.ok()) << second.status().message();
  ASSERT_TRUE(engine.Submit(AllreduceOf("y", y, y, DType::kFloat32, kThree)).ok());
  ASSERT_TRUE(engine.Submit(spec).ok()) << "the call for y came between";
  EXPECT_TRUE(engine.Wait(*first, Duration(0)).ok());
  EXPECT_TRUE(engine.Submit(spec).ok()) << "so did the wait, though for another one";
  EXPECT_TRUE(engine.Run(AllreduceOf("z", y, y, DType::kFloat32, kThree)).ok());
  EXPECT_TRUE(engine.Run(AllreduceOf("z", y, y, DType::kFloat32, kThree)).ok());
}

TEST(RunFor, GivesAHandleWhenItsTimeIsOver) {
  WorldOfThreads world(Transport::kShm, 2);
  std::vector<float> x(3, 2), theirs(3, 2);
  const RequestSpec spec = AllreduceOf("x", x, x, DType::kFloat32, kThree);
  Engine::Handle handle = 0;
  EXPECT_EQ(world.engine(0).Run(spec, Duration(0), &handle).code(), Code::kInProgress);
  ASSERT_NE(handle, 0u);
  ASSERT_TRUE(
      world.engine(1).Submit(AllreduceOf("x", theirs, theirs, DType::kFloat32, kThree)).ok());
  EXPECT_TRUE(world.engine(0).Wait(handle, Duration(-1)).ok());
  EXPECT_EQ(x[0], 4);
}

TEST(RunFor, GivesNoHandleOfWhatIsDoneOrRefused) {
  WorldOfThreads world(Transport::kInproc, 1);
  Engine& engine = world.engine(0);
  std::vector<float> x(3, 2);
  RequestSpec spec = AllreduceOf("x", x, x, DType::kFloat32, kThree);
  Engine::Handle handle = 7;
  EXPECT_TRUE(engine.Run(spec, std::chrono::hours(1), &handle).ok());
  EXPECT_EQ(handle, 0u);
  spec.process_set = 5;
  handle = 7;
  EXPECT_EQ(engine.Run(spec, std::chrono::hours(1), &handle).code(), Code::kInvalidArgument);
  EXPECT_EQ(handle, 0u);
}

TEST(Names, AreKeptByWhatTheRuntimeThreadFinished) {
  WorldOfThreads world(Transport::kShm, 2);
  std::vector<float> x(3, 2), theirs(3, 2);
  const RequestSpec spec = AllreduceOf("x", x, x, DType::kFloat32, kThree);
  auto first = world.engine(0).Submit(spec);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(
      world.engine(1).Submit(AllreduceOf("x", theirs, theirs, DType::kFloat32, kThree)).ok());
  world.engine(0).TryProgress();
  EXPECT_EQ(x[0], 4) << "finished";
  EXPECT_EQ(world.engine(0).Submit(spec).status().code(), Code::kDuplicateName);
  EXPECT_TRUE(*world.engine(0).Poll(*first));
}

// An operation that a waiting thread finishes for another one is none of its own: the next call of
// the other looks first.
TEST(Names, AreKeptByWhatAnotherThreadFinishedInAWaitFromBefore) {
  WorldOfThreads world(Transport::kShm, 2);
  std::vector<float> x(3, 2), theirs(3, 2), late(3, 2);
  auto waited = world.engine(0).Submit(AllreduceOf("late", late, late, DType::kFloat32, kThree));
  ASSERT_TRUE(waited.ok());
  std::thread waits([&] { (void)world.engine(0).Wait(*waited, Duration(-1)); });
  const RequestSpec spec = AllreduceOf("x", x, x, DType::kFloat32, kThree);
  for (int round = 0; round < 200; ++round) {
    auto first = world.engine(0).Submit(spec);
    ASSERT_TRUE(first.ok());
    auto other = world.engine(1).Submit(AllreduceOf("x", theirs, theirs, DType::kFloat32, kThree));
    ASSERT_TRUE(other.ok());
    std::this_thread::yield();
    EXPECT_EQ(world.engine(0).Submit(spec).status().code(), Code::kDuplicateName) << round;
    EXPECT_TRUE(world.engine(0).Wait(*first, Duration(-1)).ok());
    EXPECT_TRUE(world.engine(1).Wait(*other, Duration(-1)).ok());
  }
  EXPECT_TRUE(
      RunOne(world.engine(1), AllreduceOf("late", theirs, theirs, DType::kFloat32, kThree)).ok());
  waits.join();
}

// Bytes of records after each round of two ranks, in which both submit what `fill` sets.
std::vector<size_t> RecordsAfter(int rounds,
                                 const std::function<void(RequestSpec*, std::string*, int)>& fill) {
  WorldOfThreads world(Transport::kShm, 2);
  std::vector<float> mine(3, 2), theirs(3, 2);
  std::vector<size_t> used;
  for (int round = 0; round < rounds; ++round) {
    std::string name;
    RequestSpec spec = AllreduceOf("", mine, mine, DType::kFloat32, kThree);
    fill(&spec, &name, round);
    auto first = world.engine(0).Submit(spec);
    EXPECT_TRUE(first.ok()) << first.status().message();
    spec.tensor.input = spec.tensor.output = theirs.data();
    EXPECT_TRUE(world.engine(1).Run(spec).ok());
    EXPECT_TRUE(world.engine(0).Wait(*first, Duration(-1)).ok());
    used.push_back(RecordMemory::Usage().used);
  }
  return used;
}

TEST(Records, OfUnnamedOperationsAreUsedAgainAtOnce) {
  const auto used =
      RecordsAfter(10'000, [](RequestSpec* spec, std::string*, int) { spec->unnamed = true; });
  EXPECT_EQ(*std::max_element(used.begin() + 10, used.end()), used[9]);
}

TEST(Records, OfNamesThatNeverComeAgainAreBounded) {
  const auto used = RecordsAfter(10'000, [](RequestSpec* spec, std::string* name, int round) {
    spec->name = *name = "loss." + std::to_string(round);
  });
  EXPECT_EQ(*std::max_element(used.begin() + 5000, used.end()), used[4999]);
  EXPECT_LT(used[4999], size_t{4096} * 2 * 2048) << "of two ranks";
}

TEST(Engine, AfterCloseNothingIsAccepted) {
  WorldOfThreads world(Transport::kShm, 2);
  std::vector<float> x(3, 2);
  auto pending = world.engine(0).Submit(AllreduceOf("x", x, x, DType::kFloat32, {3}));
  ASSERT_TRUE(pending.ok());
  world.engine(0).Close("shutdown was called");
  world.engine(0).Close("a later reason");
  Status failed = world.engine(0).Wait(*pending, Duration(-1));
  EXPECT_EQ(failed.code(), Code::kAborted);
  EXPECT_EQ(failed.message(), "shutdown was called");
  auto next = world.engine(0).Submit(AllreduceOf("y", x, x, DType::kFloat32, {3}));
  EXPECT_EQ(next.status().message(), "shutdown was called");
}

// A rank that closes with an announced operation may be the last thing its peers waited for: they
// can be at work on its registered memory from then on, so none of it may be used again.
TEST(Engine, WhatWasAnnouncedAndIsClosedIsNotUsedAgain) {
  WorldOfThreads world(Transport::kShm, 2);
  constexpr int64_t kCount = 50'000;
  std::vector<float> mine(kCount, 1), theirs(kCount, 2);
  ASSERT_TRUE(world.engine(0).Submit(AllreduceOf("x", mine, mine, DType::kFloat32, {kCount})).ok());
  world.engine(0).Close("shutdown was called");
  // The memory that the closed operation held may come out here, if it was given back.
  constexpr size_t kBytes = kCount * sizeof(float);
  auto* next = static_cast<std::byte*>(world.heap(0).Allocate(kBytes, /*zeroed=*/true));
  ASSERT_NE(next, nullptr);
  auto handle = world.engine(1).Submit(AllreduceOf("x", theirs, theirs, DType::kFloat32, {kCount}));
  ASSERT_TRUE(handle.ok());
  (void)world.engine(1).Wait(*handle, std::chrono::milliseconds(1));
  EXPECT_TRUE(std::all_of(next, next + kBytes, [](std::byte b) { return b == std::byte{0}; }))
      << "a peer wrote into memory that was given away";
}

// The root of a broadcast out of registered memory waits until all have read it; one that left will
// never say so.
TEST(Engine, ABroadcastDoesNotWaitForAReceiverThatLeft) {
  WorldOfThreads world(Transport::kShm, 2);
  constexpr int64_t kBytes = 100'000;
  std::vector<uint8_t> theirs(kBytes);
  std::vector<int64_t> shape{kBytes};
  RequestSpec spec;
  spec.collective = Collective::kBroadcast;
  spec.name = "b";
  spec.tensor.shape = shape;
  spec.tensor.input = spec.tensor.output = theirs.data();
  ASSERT_TRUE(world.engine(1).Submit(spec).ok());
  world.Leave(1);
  spec.tensor.input = spec.tensor.output = world.heap(0).Allocate(kBytes, true);
  auto handle = world.engine(0).Submit(spec);
  ASSERT_TRUE(handle.ok());
  EXPECT_NE(world.engine(0).Wait(*handle, std::chrono::milliseconds(250)).code(), Code::kInProgress)
      << "nothing will ever end this wait";
}

}  // namespace
}  // namespace hvd::test
