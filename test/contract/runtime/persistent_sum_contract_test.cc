// Sums of two hosts that come again (PersistentCall) against the common way: each rank takes one of
// them each time, by itself, and the results and the ends are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "test/fakes/simulated_hosts.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;

const std::vector<uint32_t> kPair = {0, 1};
constexpr SimulatedHosts::Settings kSpinning = {.spin = std::chrono::milliseconds(20)};

// One sum of one rank, and its memory.
class PairSum {
 public:
  PairSum(SimulatedHosts& hosts, uint32_t rank, std::string name, size_t count,
          DType dtype = DType::kFloat32, ReduceOp op = ReduceOp::kSum)
      : hosts_(hosts), rank_(rank), in_(count * SizeOf(dtype)), out_(in_.size()) {
    task_.name = std::move(name);
    task_.group = hosts.GroupOf(rank, 0, hosts.World());
    task_.parts.resize(1);
    CollectiveCall& call = task_.parts[0].call;
    call.collective = Collective::kAllreduce;
    call.op = op;
    call.dtype = dtype;
    call.count = count;
    call.rows = static_cast<int64_t>(count);
    call.row_count = 1;
    call.input = in_.data();
    call.output = out_.data();
  }

  // The bytes of a number, again and again; small integers stay ordinary numbers of any type.
  void Fill(uint32_t seed) {
    std::mt19937 random(seed);
    for (std::byte& byte : in_) byte = static_cast<std::byte>(random() % 60);
    std::ranges::fill(out_, std::byte{0xee});
  }
  Status DoCommon() {
    Reset();
    return hosts_.Do(rank_, &task_);
  }
  Status DoAgain() {
    Reset();
    if (call_ == nullptr) call_ = hosts_.Persist(rank_, &task_);
    if (call_ == nullptr) return Internal("no persistent call");
    bool short_way = false;
    Status done = hosts_.DoAgain(rank_, *call_, &task_, &short_way);
    if (short_way) ++short_ways_;
    return done;
  }
  SimulatedTask& task() { return task_; }
  const std::vector<std::byte>& in() const { return in_; }
  const std::vector<std::byte>& out() const { return out_; }
  int short_ways() const { return short_ways_; }
  bool persists() { return hosts_.Persist(rank_, &task_) != nullptr; }

 private:
  void Reset() {
    task_.started = task_.done = false;
    task_.status = Status::Ok();
    task_.parts[0].done = false;
    task_.parts[0].state.reset();
  }

  SimulatedHosts& hosts_;
  const uint32_t rank_;
  std::vector<std::byte> in_, out_;
  SimulatedTask task_;
  std::unique_ptr<PersistentCall> call_;
  int short_ways_ = 0;
};

TEST(PersistentSumContract, GivesTheBitsOfTheCommonWay) {
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax,
                               ReduceOp::kProduct};
  SimulatedHosts hosts(kPair, kSpinning);
  std::atomic<int> short_ways = 0;
  hosts.Run([&](uint32_t rank) {
    for (DType dtype : {DType::kUint8, DType::kInt64, DType::kFloat16, DType::kBfloat16,
                        DType::kFloat32, DType::kFloat64}) {
      for (ReduceOp op : kOps) {
        for (size_t count : {1, 3, 17, 1000}) {
          PairSum sum(hosts, rank, "x", count, dtype, op);
          sum.task().parts[0].call.postscale = 0.5;
          sum.Fill(rank + 1);
          ASSERT_TRUE(sum.DoCommon().ok());
          const std::vector<std::byte> common = sum.out(), in = sum.in();
          for (int again = 0; again < 3; ++again) {
            sum.Fill(rank + 1);
            ASSERT_TRUE(sum.DoAgain().ok());
            ASSERT_EQ(sum.out(), common) << NameOf(dtype) << ", " << count;
            ASSERT_EQ(sum.in(), in) << "the input must not change";
          }
          short_ways += sum.short_ways();
        }
      }
    }
  });
  EXPECT_GT(short_ways, 0);
}

// The memory may be one.
TEST(PersistentSumContract, AddsInPlace) {
  SimulatedHosts hosts(kPair, kSpinning);
  hosts.Run([&](uint32_t rank) {
    std::vector<float> values(100);
    PairSum sum(hosts, rank, "x", values.size());
    sum.task().parts[0].call.input = sum.task().parts[0].call.output = values.data();
    for (int round = 0; round < 50; ++round) {
      std::ranges::fill(values, static_cast<float>(rank + 1));
      ASSERT_TRUE(sum.DoAgain().ok());
      ASSERT_EQ(values, std::vector<float>(100, 3.0F)) << "round " << round;
    }
  });
}

TEST(PersistentSumContract, EachRankChoosesItsWayEachTime) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    SimulatedHosts::Settings settings = kSpinning;
    settings.seed = seed;
    settings.spin = std::chrono::microseconds(seed % 2 == 0 ? 1 : 2000);
    SimulatedHosts hosts(kPair, settings);
    hosts.Run([&](uint32_t rank) {
      std::mt19937 ways(seed * 10 + rank), common(seed);  // of this rank; of both
      std::vector<std::unique_ptr<PairSum>> sums;
      for (size_t i = 0; i < 3; ++i)
        sums.push_back(std::make_unique<PairSum>(hosts, rank, "sum" + std::to_string(i), 2 + i));
      PairSum other(hosts, rank, "other", 20'000);  // too large for one message
      for (int round = 0; round < 60; ++round) {
        PairSum& sum = *sums[common() % sums.size()];
        sum.Fill(round * 2 + rank);
        Status done = ways() % 3 == 0 ? sum.DoCommon() : sum.DoAgain();
        ASSERT_TRUE(done.ok()) << done.message();
        PairSum second(hosts, 1 - rank, "not run", sum.in().size() / sizeof(float));
        second.Fill(round * 2 + 1 - rank);
        for (size_t i = 0; i < sum.in().size() / sizeof(float); ++i) {
          float own = 0, theirs = 0, result = 0;
          std::memcpy(&own, &sum.in()[i * sizeof own], sizeof own);
          std::memcpy(&theirs, &second.in()[i * sizeof own], sizeof own);
          std::memcpy(&result, &sum.out()[i * sizeof own], sizeof own);
          ASSERT_EQ(result, own + theirs) << "round " << round;
        }
        if (common() % 10 == 0) {
          ASSERT_TRUE(other.DoCommon().ok());
        }
      }
    });
  }
}

// The first round fails on both ranks, whichever way each takes, and the next one is well.
TEST(PersistentSumContract, ADisagreementEndsAsOnTheCommonWay) {
  SimulatedHosts hosts(kPair, kSpinning);
  hosts.Run([&](uint32_t rank) {
    PairSum sum(hosts, rank, "x", 4), again(hosts, rank, "x", 4);
    sum.task().detail = rank == 0 ? "four numbers" : "FOUR numbers";
    for (int round = 0; round < 12; ++round) {
      const bool by_call = ((round >> rank) & 1) != 0;
      const Status status = by_call ? sum.DoAgain() : sum.DoCommon();
      EXPECT_EQ(status.code(), Code::kMismatch);
      EXPECT_THAT(status.message(), HasSubstr("rank 1 has FOUR numbers"));
      ASSERT_TRUE(again.DoAgain().ok());
    }
  });
}

TEST(PersistentSumContract, ARankThatIsLateFindsTheSumUnderWay) {
  for (uint32_t late : {0, 1}) {
    SimulatedHosts hosts(kPair, {.spin = std::chrono::microseconds(50)});
    hosts.Run([&](uint32_t rank) {
      PairSum sum(hosts, rank, "x", 4);
      for (int round = 0; round < 12; ++round) {
        if (rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(round % 4));
        ASSERT_TRUE(sum.DoAgain().ok());
      }
    });
  }
}

TEST(PersistentSumContract, EndsWithTheCauseWhenARankLeavesOrBreaks) {
  for (bool breaks : {false, true}) {
    for (uint32_t gone : {0, 1}) {
      for (int rounds : {0, 1, 7}) {
        SimulatedHosts hosts(kPair, kSpinning);
        std::barrier together(2);
        hosts.Run([&](uint32_t rank) {
          PairSum sum(hosts, rank, "x", 4);
          for (int round = 0; round < rounds; ++round) EXPECT_TRUE(sum.DoAgain().ok());
          if (breaks) together.arrive_and_wait();  // the last round may be under way elsewhere
          if (rank == gone && breaks) return hosts.Break("rank 7 died");
          if (rank == gone) return hosts.Leave(rank);
          const Status status = sum.DoAgain();
          EXPECT_EQ(status.code(), Code::kAborted);
          EXPECT_THAT(status.message(), HasSubstr(breaks ? "rank 7 died" : "left the world"));
        });
      }
    }
  }
}

// The rank that has joined brings nothing.
TEST(PersistentSumContract, GoesOnWithoutARankThatJoined) {
  for (uint32_t joins : {0, 1}) {
    SimulatedHosts hosts(kPair, kSpinning);
    hosts.Run([&](uint32_t rank) {
      PairSum sum(hosts, rank, "x", 4), join(hosts, rank, "join", 0);
      for (int round = 0; round < 5; ++round) ASSERT_TRUE(sum.DoAgain().ok());
      if (rank != joins) {
        for (int round = 0; round < 5; ++round) {
          sum.Fill(3);
          ASSERT_TRUE(sum.DoAgain().ok());
          ASSERT_EQ(sum.out(), sum.in());
        }
      }
      join.task().parts[0].call.collective = Collective::kJoin;
      join.task().parts[0].call.root = rank;
      ASSERT_TRUE(join.DoCommon().ok());
      for (int round = 0; round < 5; ++round) ASSERT_TRUE(sum.DoAgain().ok());
    });
  }
}

TEST(PersistentSumContract, OnlySmallSumsOfTheTwoRanksPersist) {
  SimulatedHosts hosts(kPair, kSpinning), sleeping(kPair, {}), more({0, 1, 1}, kSpinning);
  EXPECT_TRUE(PairSum(hosts, 0, "x", 16 * 1024).persists());
  EXPECT_FALSE(PairSum(hosts, 0, "x", 16 * 1024 + 1).persists());
  EXPECT_FALSE(PairSum(hosts, 0, "x", 0).persists());
  EXPECT_FALSE(PairSum(hosts, 0, std::string(8000, 'x'), 16 * 1024).persists());
  EXPECT_FALSE(PairSum(hosts, 0, "x", 4, DType::kFloat32, ReduceOp::kAdasum).persists());
  PairSum broadcast(hosts, 0, "x", 4);
  broadcast.task().parts[0].call.collective = Collective::kBroadcast;
  EXPECT_FALSE(broadcast.persists());
  EXPECT_FALSE(PairSum(sleeping, 0, "x", 4).persists()) << "no core to look for an answer";
  EXPECT_FALSE(PairSum(more, 0, "x", 4).persists());
}

}  // namespace
}  // namespace hvd::test
