// The duties of every transport (Peers + Backend) to the engine, and of the engine to its caller.
// Runs on shared memory and on the inproc model, with 1 to 5 ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <numeric>
#include <random>

#include "test/fakes/world_of_threads.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;

class EngineContract : public ::testing::TestWithParam<std::tuple<Transport, uint32_t>> {
 protected:
  Transport transport() const { return std::get<0>(GetParam()); }
  uint32_t size() const { return std::get<1>(GetParam()); }
};

std::vector<float> Ramp(size_t count, uint32_t rank) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i % 1000) * (rank + 1));
  return values;
}

float RampSum(size_t i, uint32_t size) {
  return static_cast<float>((i % 1000) * (size * (size + 1) / 2));
}

TEST_P(EngineContract, SumsEverySizeFromNothingToManyChunks) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    for (size_t count : {0, 1, 3, 16, 1000, 2048, 2049, 5000, 100'000, 1'000'003}) {
      std::vector<float> in = Ramp(count, rank), out(count, -1);
      std::string name = "t" + std::to_string(count);
      ASSERT_TRUE(RunOne(world.engine(rank),
                         AllreduceOf(name, in, out, DType::kFloat32, {static_cast<int64_t>(count)}))
                      .ok());
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(out[i], RampSum(i, size())) << count << " at " << i;
      EXPECT_EQ(in, Ramp(count, rank)) << "the input must not change";
    }
  });
}

// As if each rank had a core, whatever this machine has: then ranks that wait in the call that
// submits move private memory together, chunk by chunk.
EngineOptions AsWithACoreForEach(uint32_t) {
  EngineOptions options;
  options.wait = ChooseWaitPolicy(1, 1);
  return options;
}

TEST_P(EngineContract, RunsPrivateTensorsOfEverySize) {
  WorldOfThreads world(transport(), size(), AsWithACoreForEach);
  world.Run([&](uint32_t rank) {
    for (int round = 0; round < 2; ++round) {
      for (size_t count : {1000, 100'000, 131'073, 1'000'003}) {
        std::vector<float> in = Ramp(count, rank), out(count, -1);
        std::string name = "t" + std::to_string(count);
        std::vector<float>& into = round == 1 ? in : out;
        ASSERT_TRUE(
            world.engine(rank)
                .Run(AllreduceOf(name, in, into, DType::kFloat32, {static_cast<int64_t>(count)}))
                .ok());
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(into[i], RampSum(i, size())) << count << " at " << i;
      }
    }
  });
}

// Some wait in the call, others submit first and wait later.
TEST_P(EngineContract, RunsBesideRanksThatSubmit) {
  WorldOfThreads world(transport(), size(), AsWithACoreForEach);
  world.Run([&](uint32_t rank) {
    for (size_t count : {5000, 100'000, 400'001}) {
      for (uint32_t turn = 0; turn < 4; ++turn) {
        std::vector<float> in = Ramp(count, rank), out(count, -1);
        const std::vector<int64_t> shape{static_cast<int64_t>(count)};
        const RequestSpec spec = AllreduceOf("x", in, out, DType::kFloat32, shape);
        const bool waits = (rank + turn) % 2 == 0;
        ASSERT_TRUE((waits ? world.engine(rank).Run(spec) : RunOne(world.engine(rank), spec)).ok());
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(out[i], RampSum(i, size())) << count << " at " << i;
      }
    }
  });
}

// The world breaks while data moves: every rank leaves, whatever it waits for.
TEST_P(EngineContract, LeavesARunWhenTheWorldBreaksInTheMiddle) {
  if (size() == 1 || transport() == Transport::kInproc) return;  // nothing can be in flight
  for (uint32_t turn : {0, 1, 3}) {
    WorldOfThreads world(transport(), size(), AsWithACoreForEach);
    world.Run([&](uint32_t rank) {
      std::vector<float> values(1'000'003, 1);
      for (uint32_t round = 0;; ++round) {
        if (rank == 0 && round == turn) return world.Break("rank 0 on host a (pid 4711) died");
        Status status =
            world.engine(rank).Run(AllreduceOf("x", values, values, DType::kFloat32, {1'000'003}));
        if (status.ok()) continue;
        EXPECT_EQ(status.code(), Code::kAborted);
        return;
      }
    });
  }
}

TEST_P(EngineContract, ReducesInPlace) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    for (int64_t count : {10, 50'000}) {
      std::vector<float> values = Ramp(count, rank);
      ASSERT_TRUE(
          RunOne(world.engine(rank), AllreduceOf("x", values, values, DType::kFloat32, {count}))
              .ok());
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(values[i], RampSum(i, size()));
    }
  });
}

TEST_P(EngineContract, ReducesRegisteredMemoryWhereItIs) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    constexpr int64_t kCount = 300'000;
    auto* values = static_cast<float*>(world.heap(rank).Allocate(kCount * sizeof(float), true));
    for (int round = 0; round < 5; ++round) {
      std::vector<float> ramp = Ramp(kCount, rank);
      std::copy(ramp.begin(), ramp.end(), values);
      std::vector<int64_t> shape{kCount};
      RequestSpec spec;
      spec.collective = Collective::kAllreduce;
      spec.name = "gradient";
      spec.tensor.dtype = DType::kFloat32;
      spec.tensor.input = spec.tensor.output = values;
      spec.tensor.shape = shape;
      ASSERT_TRUE(RunOne(world.engine(rank), spec).ok());
      for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], RampSum(i, size()));
    }
  });
}

TEST_P(EngineContract, AveragesAndScales) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    std::vector<double> in(100, rank + 1.0), out(100);
    std::vector<int64_t> shape{100};
    RequestSpec spec = AllreduceOf("a", in, out, DType::kFloat64, shape);
    spec.op = ReduceOp::kAverage;
    spec.prescale = 0.5;
    spec.postscale = 4.0;
    ASSERT_TRUE(RunOne(world.engine(rank), spec).ok());
    for (double value : out) EXPECT_NEAR(value, (size() + 1.0), 1e-12);
  });
}

TEST_P(EngineContract, TakesMinMaxAndProduct) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    std::vector<int64_t> in(5000, rank + 2), out(5000), shape{5000};
    RequestSpec spec = AllreduceOf("m", in, out, DType::kInt64, shape);
    int64_t product = 1;
    for (uint32_t r = 0; r < size(); ++r) product *= r + 2;
    for (auto [op, expected] : {std::pair{ReduceOp::kMin, int64_t{2}},
                                {ReduceOp::kMax, int64_t{size() + 1}},
                                {ReduceOp::kProduct, product}}) {
      spec.op = op;
      ASSERT_TRUE(RunOne(world.engine(rank), spec).ok());
      EXPECT_EQ(out, std::vector<int64_t>(5000, expected));
    }
  });
}

TEST_P(EngineContract, BroadcastsFromEveryRootPrivateAndRegistered) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    for (uint32_t root = 0; root < size(); ++root) {
      for (int64_t count : {0, 7, 100'000}) {
        for (bool registered : {false, true}) {
          std::vector<uint8_t> own(count, static_cast<uint8_t>(rank + 1));
          auto* values = own.data();
          if (registered) {
            values = static_cast<uint8_t*>(world.heap(rank).Allocate(count, true));
            std::copy(own.begin(), own.end(), values);
          }
          std::vector<int64_t> shape{count};
          RequestSpec spec;
          spec.collective = Collective::kBroadcast;
          spec.name = "b";
          spec.tensor.input = spec.tensor.output = values;
          spec.tensor.shape = shape;
          spec.root = root;
          ASSERT_TRUE(RunOne(world.engine(rank), spec).ok());
          for (int64_t i = 0; i < count; ++i) ASSERT_EQ(values[i], root + 1);
          if (registered) world.heap(rank).Free(values);
        }
      }
    }
  });
}

TEST_P(EngineContract, MatchesByNameWhateverTheOrderOfSubmission) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    std::mt19937 random(rank + 17);
    constexpr int kTensors = 400;
    std::vector<std::vector<float>> tensors(kTensors);
    std::vector<int> order(kTensors);
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < 3; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      std::vector<Engine::Handle> handles(kTensors);
      for (int t : order) {
        int64_t count = 1 + (t * 37) % 5000;
        tensors[t].assign(count, static_cast<float>(t + rank));
        Result<Engine::Handle> handle = world.engine(rank).Submit(AllreduceOf(
            "tensor." + std::to_string(t), tensors[t], tensors[t], DType::kFloat32, {count}));
        ASSERT_TRUE(handle.ok()) << handle.status().message();
        handles[t] = *handle;
      }
      for (int t = 0; t < kTensors; ++t) {
        ASSERT_TRUE(world.engine(rank).Wait(handles[t], Duration(-1)).ok());
        float expected = static_cast<float>(size() * t + size() * (size() - 1) / 2);
        for (float value : tensors[t]) ASSERT_EQ(value, expected);
      }
    }
  });
}

// More names than the ranks keep numbers for, and more announcements than their streams hold, in
// opposite orders.
TEST_P(EngineContract, SurvivesMoreNamesThanItRemembers) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    constexpr int kTensors = 10'000;
    std::vector<std::vector<int64_t>> tensors(kTensors, std::vector<int64_t>{1});
    std::vector<Engine::Handle> handles(kTensors);
    for (int i = 0; i < kTensors; ++i) {
      int t = rank % 2 == 0 ? i : kTensors - 1 - i;
      auto handle = world.engine(rank).Submit(
          AllreduceOf("n" + std::to_string(t), tensors[t], tensors[t], DType::kInt64, {1}));
      ASSERT_TRUE(handle.ok());
      handles[t] = *handle;
    }
    for (int t = 0; t < kTensors; ++t)
      ASSERT_TRUE(world.engine(rank).Wait(handles[t], Duration(-1)).ok());
    for (const auto& tensor : tensors) ASSERT_EQ(tensor[0], size());
  });
}

TEST_P(EngineContract, PollsToTheEnd) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    std::vector<float> values = Ramp(200'000, rank);
    auto handle =
        world.engine(rank).Submit(AllreduceOf("p", values, values, DType::kFloat32, {200'000}));
    ASSERT_TRUE(handle.ok());
    for (;;) {
      Result<bool> done = world.engine(rank).Poll(*handle);
      ASSERT_TRUE(done.ok());
      if (*done) break;
      std::this_thread::yield();
    }
    ASSERT_TRUE(world.engine(rank).Wait(*handle, Duration(0)).ok());
    EXPECT_EQ(world.engine(rank).Poll(*handle).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(values[999], RampSum(999, size()));
  });
}

TEST_P(EngineContract, RefusesANameInFlightOnEveryRankWhicheverComesLast) {
  WorldOfThreads world(transport(), size());
  for (int64_t count : {4, 50'000}) {
    const std::vector<int64_t> extents{count};
    std::vector<std::vector<float>> values(size(), std::vector<float>(count, 1));
    std::vector<Engine::Handle> handles;
    for (uint32_t rank = 0; rank < size(); ++rank) {
      const RequestSpec spec =
          AllreduceOf("twice", values[rank], values[rank], DType::kFloat32, extents);
      auto first = world.engine(rank).Submit(spec);
      ASSERT_TRUE(first.ok()) << first.status().message();
      EXPECT_EQ(world.engine(rank).Submit(spec).status().code(), Code::kDuplicateName) << rank;
      handles.push_back(*first);
    }
    world.Run([&](uint32_t rank) {
      ASSERT_TRUE(world.engine(rank).Wait(handles[rank], Duration(-1)).ok());
      EXPECT_EQ(values[rank][0], size());
      EXPECT_TRUE(RunOne(world.engine(rank),
                         AllreduceOf("twice", values[rank], values[rank], DType::kFloat32, extents))
                      .ok())
          << "after a wait the name is free";
    });
  }
}

TEST_P(EngineContract, AFreshHandleIsNeverDoneAtTheFirstPoll) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> values = Ramp(10, rank);
      auto handle =
          world.engine(rank).Submit(AllreduceOf("p", values, values, DType::kFloat32, {10}));
      ASSERT_TRUE(handle.ok());
      EXPECT_FALSE(*world.engine(rank).Poll(*handle)) << round;
      while (!*world.engine(rank).Poll(*handle)) std::this_thread::yield();
      auto next =
          world.engine(rank).Submit(AllreduceOf("p", values, values, DType::kFloat32, {10}));
      EXPECT_TRUE(next.ok()) << "after a poll that says so the name is free";
      EXPECT_TRUE(world.engine(rank).Wait(*handle, Duration(0)).ok());
      ASSERT_TRUE(world.engine(rank).Wait(*next, Duration(-1)).ok());
    }
  });
}

TEST_P(EngineContract, RefusesANameInFlightAndKeepsTheFirst) {
  if (size() == 1) return;  // the next one would wait for nobody
  WorldOfThreads world(transport(), size());
  std::vector<float> a(4, 1), b(4, 2);
  auto first = world.engine(0).Submit(AllreduceOf("twice", a, a, DType::kFloat32, {4}));
  ASSERT_TRUE(first.ok());
  auto second = world.engine(0).Submit(AllreduceOf("twice", b, b, DType::kFloat32, {4}));
  EXPECT_EQ(second.status().code(), Code::kDuplicateName);
  EXPECT_THAT(second.status().message(), HasSubstr("'twice'"));
  world.Run([&](uint32_t rank) {
    if (rank == 0) {
      EXPECT_TRUE(world.engine(0).Wait(*first, Duration(-1)).ok());
      return;
    }
    std::vector<float> mine(4, 1);
    EXPECT_TRUE(
        RunOne(world.engine(rank), AllreduceOf("twice", mine, mine, DType::kFloat32, {4})).ok());
  });
  EXPECT_EQ(a[0], size());
}

TEST_P(EngineContract, TellsEveryRankHowTheyDisagreeAndGoesOn) {
  if (size() == 1) return;  // nobody to disagree with
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    for (int64_t base : {4, 40'000}) {
      const bool odd = rank == size() - 1;
      int64_t count = base + (odd ? 1 : 0);
      std::vector<float> values(count, 1);
      Status shape =
          RunOne(world.engine(rank), AllreduceOf("w", values, values, DType::kFloat32, {count}));
      EXPECT_EQ(shape.code(), Code::kMismatch);
      EXPECT_THAT(shape.message(), HasSubstr("tensor 'w'"));
      EXPECT_THAT(shape.message(), HasSubstr("rank 0 has [" + std::to_string(base) + "], rank " +
                                             std::to_string(size() - 1) + " has [" +
                                             std::to_string(base + 1) + "]"));
      std::vector<float> good(base, 1);
      EXPECT_TRUE(
          RunOne(world.engine(rank), AllreduceOf("w", good, good, DType::kFloat32, {base})).ok());
      EXPECT_EQ(good[0], size());
      RequestSpec spec = AllreduceOf("v", good, good, DType::kFloat32, {base});
      std::vector<int64_t> good_shape{base};
      spec.tensor.shape = good_shape;
      spec.op = odd ? ReduceOp::kMax : ReduceOp::kSum;
      EXPECT_THAT(RunOne(world.engine(rank), spec).message(), HasSubstr("reduce operation"));
    }
  });
}

TEST_P(EngineContract, FailsWhatIsInFlightWhenTheWorldBreaks) {
  if (size() == 1) return;  // nothing can be in flight
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    if (rank == size() - 1) {
      world.Break("rank " + std::to_string(rank) + " on host a (pid 4711) died");
      return;
    }
    std::vector<float> values(50'000, 1);
    Status status =
        RunOne(world.engine(rank), AllreduceOf("x", values, values, DType::kFloat32, {50'000}));
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_THAT(status.message(), HasSubstr("on host a (pid 4711)"));
    Status next =
        RunOne(world.engine(rank), AllreduceOf("y", values, values, DType::kFloat32, {50'000}));
    EXPECT_EQ(next.code(), Code::kAborted) << "a broken world stays broken";
  });
}

// Scripts end right after their last collective, and slower ranks have yet to look for its result.
TEST_P(EngineContract, CompletesWhatAllHadDoneBeforeTheWorldBroke) {
  if (size() == 1) return;  // nothing can be in flight
  for (const bool waits : {false, true}) {
    WorldOfThreads world(transport(), size());
    std::barrier<> submitted(size()), broken(size());
    world.Run([&](uint32_t rank) {
      Engine& engine = world.engine(rank);
      std::vector<float> values(4, 1), more(4, 1);
      const std::vector<int64_t> shape{4};
      const RequestSpec last = AllreduceOf("last", values, values, DType::kFloat32, shape);
      if (rank == size() - 1) {
        submitted.arrive_and_wait();
        EXPECT_TRUE(RunOne(engine, last).ok());
        world.Break("rank " + std::to_string(rank) + " on host a (pid 4711) died");
        return broken.arrive_and_wait();
      }
      const auto handle = engine.Submit(last);
      ASSERT_TRUE(handle.ok());
      submitted.arrive_and_wait();
      broken.arrive_and_wait();
      if (waits) {
        EXPECT_TRUE(engine.Wait(*handle, Duration(-1)).ok());
        EXPECT_EQ(values[0], size());
      }
      // An operation that comes first looks at what came before it, too.
      Status next = RunOne(engine, AllreduceOf("next", more, more, DType::kFloat32, {4}));
      EXPECT_EQ(next.code(), Code::kAborted);
      if (waits) return;
      EXPECT_TRUE(engine.Wait(*handle, Duration(-1)).ok());
      EXPECT_EQ(values[0], size());
    });
  }
}

TEST_P(EngineContract, FailsOnlyWhatNeedsARankThatLeft) {
  if (size() == 1) return;  // nobody can leave
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    std::vector<float> values(4, 1);
    auto first =
        world.engine(rank).Submit(AllreduceOf("first", values, values, DType::kFloat32, {4}));
    ASSERT_TRUE(first.ok());
    ASSERT_TRUE(world.engine(rank).Wait(*first, Duration(-1)).ok());
    if (rank == size() - 1) return world.Leave(rank);
    Status status =
        RunOne(world.engine(rank), AllreduceOf("second", values, values, DType::kFloat32, {4}));
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_THAT(status.message(),
                HasSubstr("rank " + std::to_string(size() - 1) + " left the world"));
    EXPECT_THAT(status.message(), HasSubstr("'second'"));
  });
}

TEST_P(EngineContract, WaitsNoLongerThanAsked) {
  if (size() == 1) return;  // nobody to wait for
  WorldOfThreads world(transport(), size());
  std::vector<float> values(4, 1);
  auto handle = world.engine(0).Submit(AllreduceOf("x", values, values, DType::kFloat32, {4}));
  EXPECT_EQ(world.engine(0).Wait(*handle, std::chrono::milliseconds(1)).code(), Code::kInProgress);
  EXPECT_EQ(world.engine(0).Wait(*handle, Duration(0)).code(), Code::kInProgress);
  EXPECT_FALSE(*world.engine(0).Poll(*handle));
}

TEST_P(EngineContract, ServesSeveralThreadsOfOneRank) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 100; ++i) {
          int64_t count = t == 0 ? 20'000 : 5;
          std::vector<float> values(count, 1);
          std::string name = "thread" + std::to_string(t);
          ASSERT_TRUE(RunOne(world.engine(rank),
                             AllreduceOf(name, values, values, DType::kFloat32, {count}))
                          .ok());
          ASSERT_EQ(values.back(), size());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

INSTANTIATE_TEST_SUITE_P(, EngineContract,
                         ::testing::Combine(::testing::Values(Transport::kShm, Transport::kInproc),
                                            ::testing::Values(1u, 2u, 3u, 5u)),
                         [](const auto& tested) { return NameOf(tested.param); });

}  // namespace
}  // namespace hvd::test
