// Operations whose end is taken by another thread than the one that submits (Engine::PopEnded).
// Runs on shared memory and on the inproc model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "test/fakes/world_of_threads.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;

class Callbacks : public ::testing::TestWithParam<std::tuple<Transport, uint32_t>> {
 protected:
  Transport transport() const { return std::get<0>(GetParam()); }
  uint32_t size() const { return std::get<1>(GetParam()); }
};

void Unused() {}

DoneCallback CallbackFor(int* place) { return {&Unused, place}; }

TEST_P(Callbacks, EveryEndIsTakenOnceInAnyOrder) {
  constexpr int kTensors = 60;
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<std::vector<float>> values(kTensors);
    std::vector<int> ends(kTensors, 0);
    std::atomic<int> taken{0};
    std::thread taker([&] {
      while (taken.load() < kTensors) {
        std::optional<EndedOperation> ended = engine.PopEnded();
        if (!ended) {
          std::this_thread::yield();
          continue;
        }
        EXPECT_TRUE(ended->status.ok()) << ended->status.message();
        ++*static_cast<int*>(ended->callback.arg);
        taken.fetch_add(1);
      }
    });
    for (int turn = 0; turn < kTensors; ++turn) {
      const int i = rank % 2 == 0 ? turn : kTensors - 1 - turn;
      const std::vector<int64_t> shape{i % 7 == 0 ? 100'000 : 5};
      values[i].assign(static_cast<size_t>(shape[0]), static_cast<float>(rank + 1));
      auto handle = engine.Submit(
          AllreduceOf("t" + std::to_string(i), values[i], values[i], DType::kFloat32, shape));
      ASSERT_TRUE(handle.ok());
      ASSERT_TRUE(engine.SetCallback(*handle, CallbackFor(&ends[i])));
    }
    taker.join();
    EXPECT_THAT(ends, ::testing::Each(1));
    const auto sum = static_cast<float>(size() * (size() + 1) / 2);
    for (const std::vector<float>& tensor : values) EXPECT_THAT(tensor, ::testing::Each(sum));
    EXPECT_FALSE(engine.PopEnded().has_value());
  });
}

TEST_P(Callbacks, ANameIsFreeOnceItsEndIsTaken) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<float> values(3, 1);
    for (int round = 0; round < 20; ++round) {
      auto handle = engine.Submit(AllreduceOf("x", values, values, DType::kFloat32, {3}));
      ASSERT_TRUE(handle.ok()) << handle.status().message();
      int ignored = 0;
      ASSERT_TRUE(engine.SetCallback(*handle, CallbackFor(&ignored)));
      std::optional<EndedOperation> ended = engine.PopEnded();
      ASSERT_TRUE(ended.has_value());
      EXPECT_TRUE(ended->status.ok());
      ASSERT_EQ(ended->result.outputs.size(), 1u);
      EXPECT_EQ(engine.Wait(*handle, Duration(0)).code(), Code::kInvalidArgument);
    }
  });
}

// Taking an end frees no other name: whether one is in use depends on calls of the program alone.
TEST_P(Callbacks, OtherNamesStayInUse) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<float> a(3, 1), b(3, 1);
    int ignored = 0;
    auto waited = engine.Submit(AllreduceOf("waited", a, a, DType::kFloat32, {3}));
    auto called = engine.Submit(AllreduceOf("called", b, b, DType::kFloat32, {3}));
    ASSERT_TRUE(engine.SetCallback(*called, CallbackFor(&ignored)));
    ASSERT_TRUE(engine.PopEnded().has_value());
    auto again = engine.Submit(AllreduceOf("called", b, b, DType::kFloat32, {3}));
    EXPECT_TRUE(again.ok()) << again.status().message();
    EXPECT_TRUE(engine.Wait(*waited, Duration(-1)).ok());
    EXPECT_TRUE(engine.Wait(*again, Duration(-1)).ok());
  });
}

TEST_P(Callbacks, AClosedEngineEndsWhatIsPendingWithTheFirstCause) {
  if (size() == 1) return;  // nothing is ever pending
  WorldOfThreads world(transport(), size());
  std::vector<float> values(3, 1);
  Engine& engine = world.engine(0);
  auto handle = engine.Submit(AllreduceOf("x", values, values, DType::kFloat32, {3}));
  int ignored = 0;
  ASSERT_TRUE(engine.SetCallback(*handle, CallbackFor(&ignored)));
  std::optional<EndedOperation> ended;
  std::thread taker([&] { ended = engine.PopEnded(); });
  engine.Close("this rank leaves");
  taker.join();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->status.code(), Code::kAborted);
  EXPECT_THAT(ended->status.message(), HasSubstr("this rank leaves"));
  EXPECT_FALSE(engine.SetCallback(*handle, CallbackFor(&ignored))) << "it was forgotten";
}

TEST_P(Callbacks, ABrokenWorldEndsThem) {
  if (size() == 1) return;
  WorldOfThreads world(transport(), size());
  std::vector<float> values(3, 1);
  Engine& engine = world.engine(0);
  auto handle = engine.Submit(AllreduceOf("x", values, values, DType::kFloat32, {3}));
  int ignored = 0;
  ASSERT_TRUE(engine.SetCallback(*handle, CallbackFor(&ignored)));
  std::thread agent([&] { world.Break("rank 1 on host a (pid 4711) died"); });
  std::optional<EndedOperation> ended = engine.PopEnded();
  agent.join();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->status.code(), Code::kAborted);
  EXPECT_THAT(ended->status.message(), HasSubstr("4711"));
}

INSTANTIATE_TEST_SUITE_P(, Callbacks,
                         ::testing::Combine(::testing::Values(Transport::kShm, Transport::kInproc),
                                            ::testing::Values(1u, 2u, 3u)),
                         [](const auto& tested) { return NameOf(tested.param); });

}  // namespace
}  // namespace hvd::test
