// The fast path of repeated small operations (Express) against the normal one: each rank takes one
// of them in each round, by itself, and the program sees no difference. Runs on shared memory and
// on the inproc model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/fakes/counting_backend.h"
#include "test/fakes/world_of_threads.h"

namespace hvd::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class ExpressContract : public ::testing::TestWithParam<std::tuple<Transport, uint32_t>> {
 protected:
  Transport transport() const { return std::get<0>(GetParam()); }
  uint32_t size() const { return std::get<1>(GetParam()); }
};

// A world in which the normal path is counted.
class CountedWorld {
 public:
  CountedWorld(Transport transport, uint32_t size,
               const WorldOfThreads::OptionsOf& options_of = nullptr)
      : prepared_(size, 0), world_(transport, size, options_of, [this](Backend& inner) {
          return std::make_unique<CountingBackend>(inner, &prepared_[made_++]);
        }) {}
  WorldOfThreads* operator->() { return &world_; }
  // Operations of the rank that took the normal path so far.
  int common(uint32_t rank) const { return prepared_[rank]; }

 private:
  std::vector<int> prepared_;
  size_t made_ = 0;
  WorldOfThreads world_;
};

// Numbers whose sum in float32 depends on the order; the model computes in double, so there they
// are small integers.
std::vector<float> NoiseOf(Transport transport, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(random() % 2001) - 1000;
    if (transport == Transport::kShm) value = std::ldexp(value, static_cast<int>(random() % 40));
  }
  return values;
}

std::vector<float> SumInRankOrder(const std::vector<std::vector<float>>& inputs) {
  std::vector<float> sum = inputs[0];
  for (size_t r = 1; r < inputs.size(); ++r) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += inputs[r][i];
  }
  return sum;
}

// A rank that has to sleep, as its neighbours have no core, takes the normal path in that round: on
// a busy machine all may sleep in each of a batch.
TEST_P(ExpressContract, RepeatedSmallOperationsTakeIt) {
  constexpr int kRounds = 300, kMostBatches = 30;
  CountedWorld world(transport(), size());
  std::barrier together(size());
  std::vector<int> by_common_way(size());  // of the last batch
  std::atomic<uint32_t> took{0};           // ranks that ever took it
  world->Run([&](uint32_t rank) {
    Engine& engine = world->engine(rank);
    std::vector<float> values{1, 2};
    const std::vector<int64_t> shape{2};
    const auto sum = [&] {
      values = {1, 2};
      ASSERT_TRUE(engine.Run(AllreduceOf("x", values, values, DType::kFloat32, shape)).ok());
      ASSERT_EQ(values[1], 2 * size());
    };
    for (int i = 0; i < 3; ++i) sum();  // agreed, and known to follow itself
    bool took_it = false;
    for (int batch = 0; batch < kMostBatches && took < size(); ++batch) {
      together.arrive_and_wait();
      const int before = world.common(rank);
      for (int i = 0; i < kRounds; ++i) sum();
      by_common_way[rank] = world.common(rank) - before;
      if (by_common_way[rank] < kRounds && !std::exchange(took_it, true)) ++took;
      together.arrive_and_wait();  // all see the same number of ranks
    }
  });
  EXPECT_EQ(took, size());
  if (size() == 1) {
    EXPECT_EQ(by_common_way[0], 0);
  }
}

// Only the backend of the devices may touch their memory.
TEST_P(ExpressContract, TensorsOnDevicesNeverTakeIt) {
  constexpr int kRounds = 20;
  LocalSegmentSource segments;
  SharedHeap heap(segments);
  std::vector<int> by_devices(size(), 0);
  std::vector<std::unique_ptr<InprocBackend>> devices;
  std::vector<std::unique_ptr<CountingBackend>> counted;
  for (uint32_t rank = 0; rank < size(); ++rank) {
    devices.push_back(std::make_unique<InprocBackend>(heap));
    counted.push_back(std::make_unique<CountingBackend>(*devices.back(), &by_devices[rank]));
  }
  CountedWorld world(transport(), size(), [&](uint32_t rank) {
    EngineOptions options;
    options.devices = counted[rank].get();
    return options;
  });
  world->Run([&](uint32_t rank) {
    for (int i = 0; i < kRounds; ++i) {
      std::vector<float> values{1, 2};
      const std::vector<int64_t> shape{2};
      RequestSpec sum = AllreduceOf("on the GPU", values, values, DType::kFloat32, shape);
      sum.device = DeviceKind::kCuda;
      ASSERT_TRUE(world->engine(rank).Run(sum).ok());
      ASSERT_EQ(values[1], 2 * size());
    }
  });
  for (uint32_t rank = 0; rank < size(); ++rank) {
    EXPECT_EQ(by_devices[rank], kRounds);
    EXPECT_EQ(world.common(rank), 0) << "the backend for memory of the host was asked";
  }
}

TEST_P(ExpressContract, EveryCollectiveAndSizeAndBitIsAsOnTheCommonWay) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    for (int round = 0; round < 12; ++round) {
      for (size_t count : {0, 1, 2, 7, 8, 9, 14, 64, 128, 130}) {
        std::vector<std::vector<float>> inputs;
        for (uint32_t r = 0; r < size(); ++r)
          inputs.push_back(NoiseOf(transport(), count, round * 1000 + count * 10 + r));
        std::vector<float> out(count);
        const std::vector<int64_t> shape{static_cast<int64_t>(count)};
        const std::string name = std::to_string(count);
        ASSERT_TRUE(
            engine.Run(AllreduceOf("sum" + name, inputs[rank], out, DType::kFloat32, shape)).ok());
        const std::vector<float> sum = SumInRankOrder(inputs);
        ASSERT_EQ(count == 0 ? 0 : std::memcmp(out.data(), sum.data(), count * sizeof(float)), 0);
        const std::string from = "from" + name;
        RequestSpec broadcast = AllreduceOf(from, inputs[rank], out, DType::kFloat32, shape);
        broadcast.collective = Collective::kBroadcast;
        broadcast.root = size() - 1;
        ASSERT_TRUE(engine.Run(broadcast).ok());
        ASSERT_EQ(out, inputs.back());
      }
      RequestSpec barrier;
      barrier.name = "barrier";
      ASSERT_TRUE(engine.Run(barrier).ok());
    }
  });
}

// Values that tell where they come from and where they go.
int64_t ValueOf(uint32_t from, uint32_t to, int64_t row, int round) {
  return ((round * 10 + from) * 10 + to) * 1000 + row;
}

// Gathering calls, equal rows and others, into an output of the caller or none, in place too.
TEST_P(ExpressContract, GathersAreAsOnTheCommonWay) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    const int64_t members = size();
    const auto spec_of = [](Collective collective, const std::string& name,
                            const std::vector<int64_t>& in, std::vector<int64_t>& out,
                            const std::vector<int64_t>& shape) {
      RequestSpec spec;
      spec.collective = collective;
      spec.name = name;
      spec.tensor = {DType::kInt64, in.data(), out.empty() ? nullptr : out.data(), shape};
      return spec;
    };
    for (int round = 0; round < 40; ++round) {
      for (int64_t rows : {1, 2, 7, 40}) {
        const std::string name = std::to_string(rows);
        // Now and then one rank brings a row more, and all rows are asked of it again later.
        const auto rows_of = [&](uint32_t r) { return round % 8 == 7 && r == 0 ? rows + 1 : rows; };
        std::vector<int64_t> in, out, expected;
        for (int64_t i = 0; i < rows_of(rank); ++i) in.push_back(ValueOf(rank, 0, i, round));
        for (uint32_t r = 0; r < members; ++r) {
          for (int64_t i = 0; i < rows_of(r); ++i) expected.push_back(ValueOf(r, 0, i, round));
        }
        out.assign(expected.size(), -1);
        std::vector<int64_t> shape{rows_of(rank)}, none;
        ASSERT_TRUE(engine.Run(spec_of(Collective::kAllgather, "g" + name, in, out, shape)).ok());
        ASSERT_EQ(out, expected) << "rank " << rank << ", round " << round;
        ASSERT_TRUE(engine.Run(spec_of(Collective::kAllgather, "g" + name, in, none, shape)).ok());

        in.clear(), expected.clear();
        for (uint32_t to = 0; to < members; ++to) {
          for (int64_t i = 0; i < rows; ++i) in.push_back(ValueOf(rank, to, i, round));
        }
        for (uint32_t from = 0; from < members; ++from) {
          for (int64_t i = 0; i < rows; ++i) expected.push_back(ValueOf(from, rank, i, round));
        }
        out.assign(expected.size(), -1);
        shape = {rows * members};
        ASSERT_TRUE(engine.Run(spec_of(Collective::kAlltoall, "a" + name, in, out, shape)).ok());
        ASSERT_EQ(out, expected) << "rank " << rank << ", round " << round;
        if (transport() != Transport::kShm) continue;  // the model takes no output over an input
        ASSERT_TRUE(engine.Run(spec_of(Collective::kAlltoall, "p" + name, in, in, shape)).ok());
        ASSERT_EQ(in, expected) << "in place, rank " << rank << ", round " << round;
      }
    }
  });
}

// Rows that divide among the ranks and others, into an output apart and over the input.
TEST_P(ExpressContract, ScattersSumsAsOnTheCommonWay) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    const int64_t members = size();
    for (int round = 0; round < 40; ++round) {
      for (int64_t rows : {int64_t{1}, members, 2 * members + 1, int64_t{50}}) {
        std::vector<int64_t> expected;
        const int64_t each = rows / members, more = rows % members;
        const int64_t first = rank * each + std::min<int64_t>(rank, more);
        for (int64_t i = first; i < first + each + (rank < more ? 1 : 0); ++i) {
          int64_t sum = 0;
          for (uint32_t r = 0; r < members; ++r) sum += ValueOf(r, 0, i, round);
          expected.push_back(sum);
        }
        const std::vector<int64_t> shape{rows};
        for (const bool in_place : {false, true}) {
          if (in_place && transport() != Transport::kShm) continue;
          std::vector<int64_t> in;
          for (int64_t i = 0; i < rows; ++i) in.push_back(ValueOf(rank, 0, i, round));
          std::vector<int64_t> out(expected.size() + 1, -1);  // never without memory
          RequestSpec spec;
          spec.collective = Collective::kReducescatter;
          const std::string name = (in_place ? "p" : "r") + std::to_string(rows);
          spec.name = name;
          spec.tensor = {DType::kInt64, in.data(), in_place ? in.data() : out.data(), shape};
          ASSERT_TRUE(engine.Run(spec).ok());
          std::vector<int64_t>& result = in_place ? in : out;
          result.resize(expected.size());
          ASSERT_EQ(result, expected) << name << ", rank " << rank << ", round " << round;
        }
      }
    }
  });
}

// One step of a rank's program: the same operations on all ranks, each by a path of the rank's own.
class Steps {
 public:
  Steps(WorldOfThreads& world, Transport transport, uint32_t rank)
      : engine_(world.engine(rank)),
        transport_(transport),
        size_(world.size()),
        rank_(rank),
        own_(rank + 77) {}

  void Take(int step) {
    std::mt19937_64 same(step);  // the same on all ranks
    const uint64_t which = same() % 8;
    const bool behind = same() % 4 == 0;
    std::vector<float> other(3, static_cast<float>(step)), other_out(3);
    const std::vector<int64_t> three{3};
    Result<Engine::Handle> pending = Engine::Handle{0};
    if (behind) {
      pending = engine_.Submit(AllreduceOf("behind", other, other_out, DType::kFloat32, three));
      ASSERT_TRUE(pending.ok());
    }
    if (which == 0) {
      Barrier();
    } else {
      // Mostly one size; now and then another one, which is agreed anew.
      Sum(step, which == 1 ? 1 + same() % 200 : 4, which < 5 ? "a" : "b");
    }
    if (!behind) return;
    ASSERT_TRUE(engine_.Wait(*pending, Duration(-1)).ok());
    ASSERT_EQ(other_out[2], static_cast<float>(step * size_));
  }

 private:
  void Barrier() {
    RequestSpec spec;
    spec.name = "barrier";
    Go(spec);
  }

  void Sum(int step, size_t count, const std::string& name) {
    std::vector<std::vector<float>> inputs;
    for (uint32_t r = 0; r < size_; ++r)
      inputs.push_back(NoiseOf(transport_, count, step * 10 + r));
    std::vector<float> out(count);
    const std::vector<int64_t> shape{static_cast<int64_t>(count)};
    Go(AllreduceOf(name, inputs[rank_], out, DType::kFloat32, shape));
    ASSERT_EQ(out, SumInRankOrder(inputs)) << "rank " << rank_ << ", step " << step;
  }

  void Go(const RequestSpec& spec) {
    const uint64_t chance = own_() % 16;
    if (chance == 0) std::this_thread::sleep_for(std::chrono::microseconds(own_() % 300));
    if (chance == 1) std::this_thread::yield();
    const Status status = chance < 4 ? RunOne(engine_, spec) : engine_.Run(spec);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(chance != 5 || !engine_.TryProgress());
  }

  Engine& engine_;
  const Transport transport_;
  const uint32_t size_, rank_;
  std::mt19937_64 own_;
};

TEST_P(ExpressContract, EachRankTakesItOrNotInEachRound) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Steps steps(world, transport(), rank);
    for (int step = 0; step < 2000 && !HasFatalFailure(); ++step) steps.Take(step);
  });
}

// With the runtime thread, and with threads that come while another one has given its core away.
TEST_P(ExpressContract, SeveralThreadsOfARankAndItsRuntimeThread) {
  constexpr int kThreads = 3, kRounds = 300;
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::atomic<bool> over{false};
    std::thread runtime([&] {
      while (!over) {
        engine.TryProgress();
        std::this_thread::yield();
      }
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const std::string name = "thread" + std::to_string(t);
        const std::vector<int64_t> shape{2};
        for (int i = 0; i < kRounds; ++i) {
          std::vector<float> values{static_cast<float>(t), static_cast<float>(i)};
          const Status status =
              engine.Run(AllreduceOf(name, values, values, DType::kFloat32, shape));
          ASSERT_TRUE(status.ok()) << status.message();
          ASSERT_EQ(values[0], t * size());
          ASSERT_EQ(values[1], i * size());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    over = true;
    runtime.join();
  });
}

// Two threads of a rank, one name, and no round can end before the other ranks come: one of the two
// is refused.
TEST_P(ExpressContract, ANameInFlightIsRefusedToAnotherThread) {
  if (size() == 1) return;  // nobody to wait for
  WorldOfThreads world(transport(), size());
  std::atomic<bool> one_refused{false};
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<float> values{1};
    const std::vector<int64_t> shape{1};
    const RequestSpec spec = AllreduceOf("x", values, values, DType::kFloat32, shape);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(engine.Run(spec).ok());
    if (rank != 0) {
      while (!one_refused) std::this_thread::yield();
      ASSERT_TRUE(engine.Run(spec).ok());
      return;
    }
    std::atomic<bool> begins{false};
    Status ran;
    std::thread runs([&] {
      begins = true;
      ran = engine.Run(spec);
    });
    while (!begins) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(5));  // so that `runs` is mostly the first
    std::vector<float> more{1};
    Result<Engine::Handle> submitted =
        engine.Submit(AllreduceOf("x", more, more, DType::kFloat32, shape));
    if (submitted.ok()) runs.join();
    one_refused = true;
    if (!submitted.ok()) runs.join();
    const Status& refusal = submitted.ok() ? ran : submitted.status();
    EXPECT_EQ(refusal.code(), Code::kDuplicateName) << refusal.message();
    EXPECT_EQ((submitted.ok() ? engine.Wait(*submitted, Duration(-1)) : ran).code(), Code::kOk);
  });
}

// Rounds that stay open for as long as the test wants: threads look once and give their core away.
void KeepRoundsOpen(WorldOfThreads& world) {
  world.page().header().tuned.spins = 1;             // none
  world.page().header().tuned.yields = 100'000'001;  // a hundred million
}

TEST_P(ExpressContract, AnOpenRoundIsInFlightForEveryOtherThread) {
  if (size() == 1) return;  // nobody to wait for
  WorldOfThreads world(transport(), size());
  KeepRoundsOpen(world);
  std::atomic<bool> seen{false};
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<float> values{1}, more{1};
    const std::vector<int64_t> shape{1};
    const RequestSpec spec = AllreduceOf("x", values, values, DType::kFloat32, shape);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine.Run(spec).ok());
    if (rank != 0) {
      while (!seen) std::this_thread::yield();
      ASSERT_TRUE(engine.Run(spec).ok());
      return;
    }
    std::thread runs([&] { EXPECT_TRUE(engine.Run(spec).ok()); });
    std::this_thread::sleep_for(milliseconds(50));  // later than that the refusal proves less
    EXPECT_EQ(engine.Submit(AllreduceOf("x", more, more, DType::kFloat32, shape)).status().code(),
              Code::kDuplicateName);
    seen = true;
    runs.join();
  });
}

// A thread waits all the time for an operation that comes last, two others take turns.
TEST_P(ExpressContract, ThreadsThatWaitDisturbNoRound) {
  if (size() == 1) return;  // nobody to wait for
  WorldOfThreads world(transport(), size());
  KeepRoundsOpen(world);
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    const auto run = [&](const std::string& name) {
      std::vector<float> value{1};
      ASSERT_TRUE(engine.Run(AllreduceOf(name, value, value, DType::kFloat32, {1})).ok());
      ASSERT_EQ(value[0], size());
    };
    std::thread waits;
    if (rank == 0) waits = std::thread([&] { run("last"); });
    const auto rounds = [&](const std::string& name) {
      for (int i = 0; i < 100; ++i) run(name);
    };
    std::thread other([&] { rounds("a"); });
    rounds("b");
    other.join();
    if (rank != 0) run("last");
    if (rank == 0) waits.join();
  });
}

// One comes in while the other has given its core away, and would begin a round of its own.
TEST_P(ExpressContract, TwoThreadsInsideAtOnceBothComeToTheirEnd) {
  if (size() == 1) return;  // nobody to wait for
  WorldOfThreads world(transport(), size());
  KeepRoundsOpen(world);
  std::atomic<bool> inside{false};
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    const auto run = [&](const std::string& name) {
      std::vector<float> value{1};
      ASSERT_TRUE(engine.Run(AllreduceOf(name, value, value, DType::kFloat32, {1})).ok());
      ASSERT_EQ(value[0], size());
    };
    for (int i = 0; i < 3; ++i) run("p"), run("q");
    if (rank != 0) {
      while (!inside) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(20));  // so that both are, mostly
      run("q");
      run("p");
      return;
    }
    std::thread first([&] { run("p"); });
    std::this_thread::sleep_for(milliseconds(20));
    std::thread second([&] { run("q"); });
    inside = true;
    first.join();
    second.join();
  });
}

TEST_P(ExpressContract, ARankThatHasJoinedSubmitsNothingMore) {
  WorldOfThreads world(transport(), size());
  std::atomic<int> asked{0};
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<float> value{1};
    const RequestSpec spec = AllreduceOf("x", value, value, DType::kFloat32, {});
    RequestSpec join;
    join.collective = Collective::kJoin;
    join.name = "join";
    const RequestSpec other = AllreduceOf("y", value, value, DType::kFloat32, {});
    ASSERT_TRUE(engine.Run(spec).ok());
    for (int turn = 0; turn < 4; ++turn) {  // y, join, x: from the second turn on one that follows
      ASSERT_TRUE(engine.Run(other).ok());
      if (rank != 0) {
        while (asked <= turn) std::this_thread::yield();  // so that the join is not over before
      }
      const auto joined = engine.Submit(join);
      ASSERT_TRUE(joined.ok());
      if (rank == 0 && size() > 1) {
        const Status refused = engine.Run(spec);
        EXPECT_EQ(refused.code(), Code::kInvalidArgument) << refused.message();
      }
      if (rank == 0) ++asked;
      ASSERT_TRUE(engine.Wait(*joined, Duration(-1)).ok());
    }
  });
}

TEST_P(ExpressContract, RanksThatDisagreeAreToldAndGoOn) {
  if (size() == 1) return;  // nobody to disagree with
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<float> values(8, 1);
    for (int turn = 0; turn < 20; ++turn) {
      for (int i = 0; i < 10; ++i) {
        std::fill(values.begin(), values.end(), 1);
        ASSERT_TRUE(engine.Run(AllreduceOf("x", values, values, DType::kFloat32, {4})).ok());
        ASSERT_EQ(values[0], size());
      }
      const bool differs = rank == turn % size();
      const Status status = engine.Run(
          AllreduceOf("x", values, values, DType::kFloat32, {differs ? int64_t{8} : int64_t{4}}));
      ASSERT_EQ(status.code(), Code::kMismatch);
      ASSERT_THAT(status.message(), HasSubstr("[8]"));
    }
  });
}

// Each rank has one round more than the rank before it, and joins then.
TEST_P(ExpressContract, RanksThatJoinBringZeros) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    for (int turn = 0; turn < 10; ++turn) {
      for (uint32_t i = 0; i < 20 + rank; ++i) {
        std::vector<float> value{1};
        ASSERT_TRUE(engine.Run(AllreduceOf("x", value, value, DType::kFloat32, {1})).ok());
        ASSERT_EQ(value[0], i < 20 ? size() : size() - (i - 20) - 1);
      }
      RequestSpec join;
      join.collective = Collective::kJoin;
      join.name = "join";
      ASSERT_TRUE(engine.Run(join).ok());
    }
  });
}

TEST_P(ExpressContract, ABrokenWorldEndsTheWait) {
  if (size() == 1) return;  // nobody to wait for
  WorldOfThreads world(transport(), size());
  std::atomic<uint32_t> inside{0};
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<float> value{1};
    const RequestSpec spec = AllreduceOf("x", value, value, DType::kFloat32, {});
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(engine.Run(spec).ok());
    ++inside;
    if (rank == 0) {
      while (inside < size()) std::this_thread::yield();
      return world.Break("rank 0 died");
    }
    const Status status = engine.Run(spec);
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 died"));
  });
}

TEST_P(ExpressContract, ALeaverEndsTheWait) {
  if (size() == 1) return;  // nobody to wait for
  WorldOfThreads world(transport(), size());
  std::atomic<uint32_t> inside{0};
  world.Run([&](uint32_t rank) {
    std::vector<float> value{1};
    const RequestSpec spec = AllreduceOf("x", value, value, DType::kFloat32, {});
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(world.engine(rank).Run(spec).ok());
    ++inside;
    if (rank == 0) {
      while (inside < size()) std::this_thread::yield();
      return world.Leave(0);
    }
    const Status status = world.engine(rank).Run(spec);
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 left the world"));
  });
}

// The stall check sees the round like any other wait.
TEST_P(ExpressContract, AStallEndsTheWorldWithItsSentence) {
  if (size() == 1) return;  // nobody to wait for
  WorldOfThreads world(transport(), size(), [](uint32_t) {
    EngineOptions options;
    options.stall_shutdown = milliseconds(150);
    return options;
  });
  std::atomic<bool> over{false};
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<float> value{1};
    const RequestSpec spec = AllreduceOf("x", value, value, DType::kFloat32, {});
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(engine.Run(spec).ok());
    if (rank == 0) {
      while (!over) std::this_thread::yield();
      return;
    }
    const Status status = engine.Run(spec);
    over = true;
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_THAT(status.message(), HasSubstr("in 'x' for rank 0 to submit it"));
  });
}

INSTANTIATE_TEST_SUITE_P(, ExpressContract,
                         ::testing::Combine(::testing::Values(Transport::kShm, Transport::kInproc),
                                            ::testing::Values(1u, 2u, 3u, 5u)),
                         [](const auto& tested) { return NameOf(tested.param); });

}  // namespace
}  // namespace hvd::test
