// The model and Gloo over a mesh on loopback keep the promises of an InterHostComm; the leaders are
// threads. Also how a world of leaders ends, and what Gloo alone promises.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/backends/inter_host_comm.h"
#include "test/contract/runtime/counted_copies.h"
#include "test/contract/runtime/inter_host_contract.h"
#include "test/contract/runtime/inter_host_values.h"
#include "test/fakes/inproc/inproc_inter_host_comm.h"
#include "test/fakes/memory_kv_store.h"
#ifdef HVD_HAVE_GLOO
#include "runtime/backends/gloo/gloo_inter_host_comm.h"
#endif

namespace hvd::test {
namespace {

enum class Kind { kInproc, kGloo };

// Leaders with world ranks 3, 10, 17, ...: an index is no rank.
class Leaders final : public LeaderWorld {
 public:
  Leaders(Kind kind, uint32_t size) : kind_(kind) {
    for (uint32_t i = 0; i < size; ++i) ranks_.push_back(3 + 7 * i);
    for (uint32_t rank : ranks_) comms_.push_back(MakeOne(rank));
  }

  InterHostComm& at(uint32_t index) { return *comms_[index]; }
  void Leave(uint32_t index) { comms_[index].reset(); }
  uint32_t size() const { return static_cast<uint32_t>(ranks_.size()); }
  uint32_t rank(uint32_t index) const { return ranks_[index]; }
  InterHostCall Call(uint32_t index, uint64_t tag = 1) const { return {{ranks_, index}, tag}; }
  // One thread per leader.
  void Run(const std::function<void(const Leader&)>& body) override {
    Run([&](uint32_t i) { body({at(i), ranks_, i}); });
  }
  void Run(const std::function<void(uint32_t)>& body) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < size(); ++i) threads.emplace_back([&, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::unique_ptr<InterHostComm> MakeOne(uint32_t rank) {
#ifdef HVD_HAVE_GLOO
    if (kind_ == Kind::kGloo) {
      InterHostOptions options{.rank = rank, .generation = 1, .job_key = "a key"};
      options.listen.addresses = {"127.0.0.1"};
      Result<std::unique_ptr<GlooInterHostComm>> comm =
          GlooInterHostComm::Open(options, directory_);
      EXPECT_TRUE(comm.ok()) << comm.status().message();
      return std::move(*comm);
    }
#endif
    return std::make_unique<InprocInterHostComm>(hub_, rank);
  }

  const Kind kind_;
  InprocInterHostHub hub_;
  MemoryKvStore directory_;
  std::vector<uint32_t> ranks_;
  std::vector<std::unique_ptr<InterHostComm>> comms_;
};

// Each asks for worlds of its own, so every one of them can be broken.
class InterHostEnds : public ::testing::TestWithParam<Kind> {};

std::string NameOf(Kind kind) { return kind == Kind::kGloo ? "Gloo" : "Inproc"; }

InterHostImplementation ImplementationOf(Kind kind) {
  return {.name = NameOf(kind),
          .sizes =
              [] {
                return std::vector<uint32_t>{1, 2, 3, 5};
              },
          .open = [kind](uint32_t size) { return std::make_unique<Leaders>(kind, size); }};
}

// ---- ends

TEST_P(InterHostEnds, AbortEndsEveryWaitAndTellsTheOthers) {
  Leaders leaders(GetParam(), 3);
  std::atomic<int> waiting{0};
  leaders.Run([&](uint32_t i) {
    float value = 1;  // connects everybody
    ExpectOk(leaders.at(i).Allreduce(leaders.Call(i), {}, &value, &value, 1));
    if (i == 2) {
      // Never takes part: the others can only leave because of the abort.
      while (waiting.load() < 2) std::this_thread::yield();
      leaders.at(0).Abort(Aborted("the test has had enough"));
      return;
    }
    Bytes data = Values(DType::kFloat32, 1 << 20, i);
    waiting.fetch_add(1);
    Status ended = leaders.at(i).Allreduce(leaders.Call(i), {}, data.data(), data.data(), 1 << 20);
    EXPECT_EQ(ended.code(), Code::kAborted);
    EXPECT_NE(ended.message().find("the test has had enough"), std::string::npos)
        << ended.message();
  });
  EXPECT_EQ(leaders.at(0).Receive(kAnyLeader, 1, Soon()).status().code(), Code::kAborted);
  float value = 1;
  EXPECT_EQ(leaders.at(0).Allreduce(leaders.Call(0), {}, &value, &value, 1).code(), Code::kAborted);
}

TEST_P(InterHostEnds, WhoWaitsForALeaderThatLeavesIsTold) {
  Leaders leaders(GetParam(), 2);
  int64_t sums[2] = {1, 2};
  leaders.Run([&](uint32_t i) {  // connects both ways
    ExpectOk(leaders.at(i).Allreduce(leaders.Call(i), {DType::kInt64, Arithmetic::kSum}, &sums[i],
                                     &sums[i], 1));
  });
  std::thread waiter([&] {
    Status ended = leaders.at(0).Receive(leaders.rank(1), 4, Soon()).status();
    EXPECT_EQ(ended.code(), Code::kAborted);
    EXPECT_NE(ended.message().find("rank 10"), std::string::npos) << ended.message();
  });
  leaders.Leave(1);
  waiter.join();
  EXPECT_EQ(leaders.at(0).Receive(kAnyLeader, 4, TimePoint{}).status().code(), Code::kInProgress)
      << "the loss of one is no end for who listens to all";
}

TEST_P(InterHostEnds, WhatALeaverSaidIsHeardBeforeItsEnd) {
  Leaders leaders(GetParam(), 2);
  const char words[] = "farewell";
  ExpectOk(leaders.at(1).Send(leaders.rank(0), 4, std::as_bytes(std::span(words)), Soon()));
  leaders.Leave(1);
  Result<InterHostMessage> heard = leaders.at(0).Receive(leaders.rank(1), 4, Soon());
  ASSERT_TRUE(heard.ok()) << heard.status().message();
  EXPECT_STREQ(heard->bytes.c_str(), words);
  EXPECT_EQ(leaders.at(0).Receive(leaders.rank(1), 4, Soon()).status().code(), Code::kAborted);
}

TEST_P(InterHostEnds, AnIdleLimitEndsACollectiveInWhichNothingMoves) {
  Leaders leaders(GetParam(), 2);
  float value = 1;
  InterHostCall call = leaders.Call(0);
  call.idle_limit = std::chrono::milliseconds(20);
  EXPECT_EQ(leaders.at(0).Allreduce(call, {}, &value, &value, 1).code(), Code::kInProgress);
}

// A leader that is late, or stopped, is a matter of the stall check.
TEST_P(InterHostEnds, WithoutALimitALateLeaderIsWaitedFor) {
  Leaders leaders(GetParam(), 2);
  std::atomic<bool> over = false;
  float values[] = {1, 2};
  std::thread early([&] {
    ExpectOk(leaders.at(0).Allreduce(leaders.Call(0), {}, &values[0], &values[0], 1));
    over = true;
  });
  // Nothing but a message of another tag, which says that time has passed.
  ExpectOk(leaders.at(0).Send(leaders.rank(1), 9, {}, Soon()));
  EXPECT_TRUE(leaders.at(1).Receive(leaders.rank(0), 9, Soon()).ok());
  EXPECT_FALSE(over);
  ExpectOk(leaders.at(1).Allreduce(leaders.Call(1), {}, &values[1], &values[1], 1));
  early.join();
  EXPECT_EQ(values[0], 3);
}

#ifdef HVD_HAVE_GLOO
// ---- Gloo alone

TEST(GlooInterHostComm, EveryWayGivesTheRightSum) {
  for (uint32_t size : {2u, 3u, 4u, 5u}) {
    Leaders leaders(Kind::kGloo, size);
    for (AllreduceAlgorithm way : {AllreduceAlgorithm::kDirect, AllreduceAlgorithm::kSliced}) {
      for (size_t count : {size_t{1}, size_t{4}, size_t{1001}, size_t{700'001}}) {
        std::vector<Bytes> parts = ValuesOfAll(size, DType::kBfloat16, count);
        ReduceSpec sum{DType::kBfloat16, Arithmetic::kSum};
        Bytes expected = Combined(sum, parts);
        leaders.Run([&](uint32_t i) {
          ExpectOk(
              dynamic_cast<GlooInterHostComm&>(leaders.at(i))
                  .AllreduceBy(way, leaders.Call(i), sum, parts[i].data(), parts[i].data(), count));
          EXPECT_TRUE(parts[i] == expected)
              << size << " leaders, way " << static_cast<int>(way) << ", " << count;
        });
      }
    }
  }
}

// Halves that a sum rounded at each step would lose: 2048 + 1 + 1 + 1 + 1 is 2052, and 2048 + 1 is
// 2048.
TEST(GlooInterHostComm, HalfTypesAreRoundedOnce) {
  Leaders leaders(Kind::kGloo, 5);
  for (size_t count : {size_t{3}, size_t{500'000}}) {
    leaders.Run([&](uint32_t i) {
      std::vector<uint16_t> data(count, i == 0 ? 0x6800 : 0x3c00);
      ExpectOk(leaders.at(i).Allreduce(leaders.Call(i), {DType::kFloat16, Arithmetic::kSum},
                                       data.data(), data.data(), count));
      EXPECT_EQ(data, std::vector<uint16_t>(count, 0x6802));
    });
  }
}

// Each chooses by its own links.
TEST(GlooInterHostComm, LeadersMayHaveDifferentNumbersOfPiecesUnderWay) {
  const size_t count = 300'007;
  const ReduceSpec spec{DType::kFloat32, Arithmetic::kSum};
  Leaders leaders(Kind::kGloo, 3);
  std::vector<Bytes> parts;
  for (uint32_t i = 0; i < 3; ++i) parts.push_back(Values(DType::kFloat32, count, i));
  const Bytes expected = Combined(spec, parts);
  leaders.Run([&](uint32_t i) {
    InterHostCall call = leaders.Call(i);
    call.cut = {.piece_kib = 64, .pieces = 1 + 6 * i};
    Bytes result(expected.size());
    ExpectOk(leaders.at(i).Allreduce(call, spec, parts[i].data(), result.data(), count));
    EXPECT_TRUE(result == expected) << "leader " << i;
  });
}

// One leader makes it step by step, and does not know how large sums are cut.
TEST(GlooInterHostComm, ASmallSumMadeInStepsMeetsAnyCut) {
  Leaders leaders(Kind::kGloo, 2);
  const size_t count = (256 << 10) / sizeof(float);
  const ReduceSpec spec{DType::kFloat32, Arithmetic::kSum};
  const std::vector<Bytes> parts = {Values(DType::kFloat32, count, 0),
                                    Values(DType::kFloat32, count, 1)};
  const Bytes expected = Combined(spec, parts);
  std::vector<Bytes> results(2, Bytes(expected.size()));
  std::thread other([&] {
    InterHostCall call = leaders.Call(0);
    call.cut = {.piece_kib = 16, .pieces = 4, .stripes = 4};
    ExpectOk(leaders.at(0).Allreduce(call, spec, parts[0].data(), results[0].data(), count));
  });
  std::unique_ptr<InterHostSum> sum = leaders.at(1).steps()->BeginSum(
      leaders.Call(1), spec, parts[1].data(), results[1].data(), count);
  ExpectOk(sum->Continue(Soon()));
  other.join();
  for (const Bytes& result : results) EXPECT_TRUE(result == expected);
}

// Whatever its size, and also by looks that wait for nothing.
TEST(GlooInterHostComm, ASumMadeInStepsMeetsOnesMadeAtOnce) {
  const ReduceSpec spec{DType::kFloat32, Arithmetic::kSum};
  for (const uint32_t size : {2U, 3U}) {
    Leaders leaders(Kind::kGloo, size);
    uint64_t tag = 0;
    for (const size_t count : {size_t{1}, size_t{70'000}, size_t{700'003}}) {
      std::vector<Bytes> parts;
      for (uint32_t i = 0; i < size; ++i) parts.push_back(Values(DType::kFloat32, count, i));
      const Bytes expected = Combined(spec, parts);
      for (const SumCut& cut : {SumCut{}, SumCut{.piece_kib = 64, .pieces = 3, .stripes = 2}}) {
        for (const bool looks : {false, true}) {
          ++tag;
          leaders.Run([&](uint32_t i) {
            ExpectSumByCopies(leaders.Call(i, tag), cut, parts[i], expected,
                              [&](const InterHostCall& call, std::byte* place) {
                                InterHostComm& comm = leaders.at(i);
                                if (i == 0) return comm.Allreduce(call, spec, place, place, count);
                                const auto sum =
                                    comm.steps()->BeginSum(call, spec, place, place, count);
                                Status done(Code::kInProgress, "");
                                while (done.code() == Code::kInProgress) {
                                  done = sum->Continue(looks ? TimePoint{} : Soon());
                                  std::this_thread::yield();
                                }
                                return done;
                              });
          });
        }
      }
    }
  }
}

TEST(GlooInterHostComm, TheWayDependsOnSizeAndLeaders) {
  const size_t small = 4096, large = 64 << 20;
  EXPECT_EQ(ChooseAllreduce(small, 2), AllreduceAlgorithm::kDirect);
  EXPECT_EQ(ChooseAllreduce(large, 2), AllreduceAlgorithm::kSliced);
  EXPECT_EQ(ChooseAllreduce(small, 100), AllreduceAlgorithm::kSliced);
}

constexpr Kind kKinds[] = {Kind::kInproc, Kind::kGloo};
#else
constexpr Kind kKinds[] = {Kind::kInproc};
#endif

std::vector<InterHostImplementation> Implementations() {
  std::vector<InterHostImplementation> all;
  for (Kind kind : kKinds) all.push_back(ImplementationOf(kind));
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, InterHostContract, ::testing::ValuesIn(Implementations()),
                         NameOfImplementation);
INSTANTIATE_TEST_SUITE_P(All, InterHostEnds, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace hvd::test
