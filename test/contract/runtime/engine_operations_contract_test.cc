// The duties of the engine to its caller beyond a plain allreduce: every collective, groups,
// process sets, joins, and errors that leave the world usable. Runs on shared memory and on the
// inproc model, with threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <optional>

#include "runtime/trace/ring_reader.h"
#include "test/fakes/world_of_threads.h"
#include "test/unit/trace/ring_memory.h"

namespace hvd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Operations : public ::testing::TestWithParam<std::tuple<Transport, uint32_t>> {
 protected:
  Transport transport() const { return std::get<0>(GetParam()); }
  uint32_t size() const { return std::get<1>(GetParam()); }
  void JoinOneByOne(bool of_active);
};

using Values = std::vector<int64_t>;
using Shape = std::vector<int64_t>;

RequestSpec SpecOf(Collective collective, std::string_view name, const Values& in, Values* out,
                   const Shape& shape) {
  RequestSpec spec;
  spec.collective = collective;
  spec.name = name;
  spec.tensor = {DType::kInt64, in.data(), out == nullptr ? nullptr : out->data(), shape};
  return spec;
}

Status RunFor(Engine& engine, const RequestSpec& spec, OperationResult* result) {
  Result<Engine::Handle> handle = engine.Submit(spec);
  if (!handle.ok()) return handle.status();
  return engine.Wait(*handle, Duration(-1), result);
}

// The values of an output that the runtime made; frees it.
Values TakeValues(SharedHeap& heap, const OperationResult::Output& output) {
  const auto* made = static_cast<const int64_t*>(output.made);
  if (made == nullptr) return {};
  Values values(made, made + ElementsOf(output.shape));
  EXPECT_TRUE(heap.Free(output.made));
  return values;
}

int32_t AddSet(Engine& engine, std::vector<uint32_t> ranks) {
  OperationResult result;
  Result<Engine::Handle> handle = engine.SubmitAddProcessSet(ranks);
  if (!handle.ok()) return -1;
  return engine.Wait(*handle, Duration(-1), &result).ok() ? result.process_set : -1;
}

Status RemoveSet(Engine& engine, int32_t id) {
  Result<Engine::Handle> handle = engine.SubmitRemoveProcessSet(id);
  return handle.ok() ? engine.Wait(*handle, Duration(-1)) : handle.status();
}

// Sums 1 from every member.
void ExpectSum(Engine& engine, int32_t set, int64_t members) {
  Values one{1}, sum{0};
  const Shape shape{1};
  RequestSpec spec = SpecOf(Collective::kAllreduce, "one", one, &sum, shape);
  spec.process_set = set;
  const Status status = RunOne(engine, spec);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(sum[0], members);
}

TEST_P(Operations, GathersUnequalRows) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    for (int64_t columns : {0, 2, 3000}) {
      const int64_t rows = rank;  // none from rank 0
      Values in(static_cast<size_t>(rows * columns), rank), expected;
      const Shape shape{rows, columns};
      OperationResult result;
      ASSERT_TRUE(RunFor(world.engine(rank),
                         SpecOf(Collective::kAllgather, "g", in, nullptr, shape), &result)
                      .ok());
      for (uint32_t r = 0; r < size(); ++r) {
        expected.insert(expected.end(), static_cast<size_t>(r * columns), r);
      }
      const int64_t all_rows = size() * (size() - 1) / 2;
      EXPECT_EQ(result.outputs[0].shape, (Shape{all_rows, columns}));
      EXPECT_EQ(TakeValues(world.heap(rank), result.outputs[0]), expected);
    }
  });
}

TEST_P(Operations, ExchangesRowsWithAndWithoutSplits) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    for (bool given : {false, true}) {
      for (int64_t columns : {1, 2000}) {
        // Rank r gives r + 1 rows to each, or 1 + to rows to member `to`.
        Values splits, expected;
        for (uint32_t to = 0; to < size(); ++to) splits.push_back(given ? 1 + to : rank + 1);
        const int64_t rows = std::accumulate(splits.begin(), splits.end(), int64_t{0});
        Values in(static_cast<size_t>(rows * columns), rank);
        const Shape shape{rows, columns};
        RequestSpec spec = SpecOf(Collective::kAlltoall, "a", in, nullptr, shape);
        if (given) spec.splits = splits;
        OperationResult result;
        ASSERT_TRUE(RunFor(world.engine(rank), spec, &result).ok());
        for (uint32_t from = 0; from < size(); ++from) {
          const int64_t got = given ? 1 + rank : from + 1;
          EXPECT_EQ(result.received_splits[from], got);
          expected.insert(expected.end(), static_cast<size_t>(got * columns), from);
        }
        EXPECT_EQ(TakeValues(world.heap(rank), result.outputs[0]), expected);
      }
    }
  });
}

TEST_P(Operations, ScattersUnevenRows) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    for (int64_t rows : {1, 7, 4000}) {
      Values in(static_cast<size_t>(rows) * 2);
      std::iota(in.begin(), in.end(), int64_t{rank});
      const Shape shape{rows, 2};
      OperationResult result;
      ASSERT_TRUE(RunFor(world.engine(rank),
                         SpecOf(Collective::kReducescatter, "s", in, nullptr, shape), &result)
                      .ok());
      const int64_t each = rows / size(), more = rows % size();
      const int64_t first = rank * each + std::min<int64_t>(rank, more);
      Values expected(static_cast<size_t>(each + (rank < more ? 1 : 0)) * 2);
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] = static_cast<int64_t>(size()) * (first * 2 + static_cast<int64_t>(i)) +
                      size() * (size() - 1) / 2;
      }
      EXPECT_EQ(TakeValues(world.heap(rank), result.outputs[0]), expected);
    }
  });
}

TEST_P(Operations, OutputsThatNobodyTakesAreFreed) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Values in(1000, 1);
    const Shape shape{1000};
    RequestSpec spec = SpecOf(Collective::kAllgather, "g", in, nullptr, shape);
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(RunOne(world.engine(rank), spec).ok());
    ASSERT_TRUE(world.engine(rank).Submit(spec).ok());  // nor those of a handle nobody waits for
  });
}

TEST_P(Operations, AGroupIsOneOperation) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    // Tiny, inline and large tensors, some of them empty; then more than a record can list.
    for (size_t tensors : {1, 2, 40, 5000}) {
      std::vector<Values> values(tensors);
      std::vector<Shape> shapes(tensors);
      std::vector<TensorSpec> specs;
      for (size_t t = 0; t < tensors; ++t) {
        const int64_t count = t % 7 == 6                       ? 0
                              : t % 11 == 10 && tensors < 1000 ? 30'000
                                                               : 1 + static_cast<int64_t>(t % 5);
        values[t].assign(static_cast<size_t>(count), static_cast<int64_t>(t + rank));
        shapes[t] = {count};
        specs.push_back({DType::kInt64, values[t].data(), values[t].data(), shapes[t]});
      }
      RequestSpec spec;
      spec.collective = Collective::kAllreduce;
      spec.name = "group";
      spec.group = specs;
      OperationResult result;
      const Status status = RunFor(world.engine(rank), spec, &result);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(result.outputs.size(), tensors);
      for (size_t t = 0; t < tensors; ++t) {
        const auto sum = static_cast<int64_t>(size() * t + size() * (size() - 1) / 2);
        for (int64_t value : values[t]) ASSERT_EQ(value, sum) << t;
      }
    }
  });
}

TEST_P(Operations, AGroupFailsAsAWhole) {
  if (size() == 1) return;  // nobody to disagree with
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Values a(3, 1), b(3, 1);
    const Shape three{3}, one{1};
    std::vector<TensorSpec> specs = {{DType::kInt64, a.data(), a.data(), three},
                                     {DType::kInt64, b.data(), b.data(), three}};
    RequestSpec spec;
    spec.collective = Collective::kAllreduce;
    spec.name = "group";
    spec.group = specs;
    if (rank == 1) specs[1].shape = one;
    Status status = RunOne(world.engine(rank), spec);
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(status.message(), HasSubstr("number 2 of 2"));
    EXPECT_EQ(a, Values(3, 1)) << "nothing of it was reduced";
    specs[1].shape = three;
    if (rank == 1) spec.group = std::span(specs).first(1);
    EXPECT_THAT(RunOne(world.engine(rank), spec).message(), HasSubstr("number of tensors"));
    spec.group = specs;
    EXPECT_TRUE(RunOne(world.engine(rank), spec).ok());
    EXPECT_EQ(b, Values(3, size()));
  });
}

TEST_P(Operations, OtherTensorsOfEqualShapesAreNotAdded) {
  if (size() == 1) return;  // nobody to disagree with
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Values a(3, 1), b(3, 1);
    const Shape three{3};
    const std::vector<TensorSpec> specs = {{DType::kInt64, a.data(), a.data(), three},
                                           {DType::kInt64, b.data(), b.data(), three}};
    RequestSpec spec;
    spec.collective = Collective::kAllreduce;
    spec.name = "group";
    spec.group = specs;
    const auto name = [&](bool swapped) {
      spec.names_hash = swapped ? 2 : 1;
      spec.names = swapped ? "b\na" : "a\nb";
    };
    name(rank == 1);
    const Status first = RunOne(world.engine(rank), spec);
    EXPECT_EQ(first.code(), Code::kMismatch);
    EXPECT_THAT(first.message(), HasSubstr("rank 0 has [a, b], rank 1 has [b, a]"));
    EXPECT_EQ(a, Values(3, 1)) << "nothing of it was reduced";
    name(false);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(RunOne(world.engine(rank), spec).ok());
    const int64_t cube = int64_t{size()} * size() * size();
    EXPECT_EQ(b, Values(3, cube));
    name(rank == 1);  // after they have agreed
    const Status later = RunOne(world.engine(rank), spec);
    EXPECT_EQ(later.code(), Code::kMismatch);
    EXPECT_THAT(later.message(), HasSubstr("rank 1 has [b, a]"));
    EXPECT_EQ(b, Values(3, cube));
  });
}

TEST_P(Operations, SetsComeAndGoWithTheSmallestFreeId) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<uint32_t> even;
    for (uint32_t r = 0; r < size(); r += 2) even.push_back(r);
    for (int round = 0; round < 10; ++round) {
      const int32_t last = size() > 1 ? AddSet(engine, {size() - 1}) : 0;
      const int32_t evens = size() > 2 ? AddSet(engine, even) : 0;
      if (size() > 1) {
        ASSERT_EQ(last, 1);
        EXPECT_EQ(engine.ProcessSetRank(1), rank == size() - 1 ? 0 : -1);
        EXPECT_EQ(engine.SubmitAddProcessSet(std::vector<uint32_t>{size() - 1}).status().code(),
                  Code::kInvalidArgument);
        if (rank == size() - 1) ExpectSum(engine, 1, 1);
      }
      if (size() > 2) {
        ASSERT_EQ(evens, 2);
        EXPECT_EQ(engine.ProcessSetSize(2), static_cast<int32_t>(even.size()));
        EXPECT_EQ(*engine.ProcessSetRanks(2), even);
        if (rank % 2 == 0) ExpectSum(engine, 2, static_cast<int64_t>(even.size()));
        ASSERT_TRUE(RemoveSet(engine, 2).ok());
      }
      ExpectSum(engine, 0, size());
      if (size() > 1) {
        ASSERT_TRUE(RemoveSet(engine, 1).ok());
      }
      EXPECT_EQ(engine.ProcessSetIds(), std::vector<int32_t>{0});
    }
  });
}

TEST_P(Operations, RefusesWhatASetCannotDo) {
  if (size() == 1) return;  // no set but the world is possible
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    for (const std::vector<uint32_t>& ranks :
         {std::vector<uint32_t>{}, {0, 0}, {size()}, {UINT32_MAX}}) {
      EXPECT_EQ(engine.SubmitAddProcessSet(ranks).status().code(), Code::kInvalidArgument);
    }
    EXPECT_EQ(engine.SubmitRemoveProcessSet(0).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(engine.SubmitRemoveProcessSet(5).status().code(), Code::kInvalidArgument);
    ASSERT_EQ(AddSet(engine, {0}), 1);
    Values x{1};
    const Shape shape{1};
    RequestSpec spec = SpecOf(Collective::kAllreduce, "x", x, &x, shape);
    spec.process_set = 7;
    EXPECT_THAT(engine.Submit(spec).status().message(), HasSubstr("process set 7 is unknown"));
    spec.process_set = 1;
    if (rank != 0) {
      EXPECT_THAT(engine.Submit(spec).status().message(),
                  HasSubstr("is no member of process set 1"));
    }
    spec.collective = Collective::kJoin;
    EXPECT_THAT(engine.Submit(spec).status().message(), HasSubstr("on the world only"));
    // Different ranks on different callers; the world goes on.
    Result<Engine::Handle> odd =
        engine.SubmitAddProcessSet(std::vector<uint32_t>{rank == 0 ? 0u : 1u, size() - 1});
    if (size() > 2) {
      EXPECT_EQ(engine.Wait(*odd, Duration(-1)).code(), Code::kMismatch);
      ExpectSum(engine, 0, size());
    }
  });
}

TEST_P(Operations, ARemovalFailsWhatIsPendingOnItsSetAlone) {
  if (size() < 2) return;
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    std::vector<uint32_t> all(size() - 1);
    std::iota(all.begin(), all.end(), 1u);
    ASSERT_EQ(AddSet(engine, all), 1);
    Values x{1};
    const Shape shape{1};
    RequestSpec spec = SpecOf(Collective::kAllreduce, "alone", x, &x, shape);
    spec.process_set = 1;
    std::optional<Engine::Handle> pending;
    if (rank == 1 && size() > 2) pending = *engine.Submit(spec);
    ASSERT_TRUE(RemoveSet(engine, 1).ok());
    if (pending) {
      const Status status = engine.Wait(*pending, Duration(-1));
      EXPECT_EQ(status.code(), Code::kAborted);
      EXPECT_THAT(status.message(), HasSubstr("process set 1 was removed before 'alone'"));
    }
    ExpectSum(engine, 0, size());
    ASSERT_EQ(AddSet(engine, all), 1) << "the id is free again";
    if (rank != 0) ExpectSum(engine, 1, size() - 1);
  });
}

TEST_P(Operations, RanksThatJoinBringZeros) { JoinOneByOne(/*of_active=*/false); }

TEST_P(Operations, RanksThatJoinAreLeftOutOfAveragesWhereThatIsSet) {
  JoinOneByOne(/*of_active=*/true);
}

// The events that a timeline shows of the operations of each rank, where somebody wants it.
TEST(Activities, CopiesAndTheWayOfTheDataAreRecordedWhereTheyAreWanted) {
  constexpr uint32_t kSize = 2;
  for (const bool wanted : {true, false}) {
    std::vector<RingMemory> rings;
    for (uint32_t r = 0; r < kSize; ++r) rings.emplace_back(256);
    WorldOfThreads world(Transport::kShm, kSize, [&](uint32_t rank) {
      EngineOptions options;
      options.recorder = Recorder(rings[rank].span());
      if (wanted) RingReader(rings[rank].span()).Want(kTraceForLauncher);
      return options;
    });
    world.Run([&](uint32_t rank) {
      for (const int64_t count : {1, 100'000}) {
        const Values in(static_cast<size_t>(count), 1);
        Values out(in.size());
        const Shape shape{count};
        const std::string name = "x" + std::to_string(count);
        ASSERT_TRUE(
            RunOne(world.engine(rank), SpecOf(Collective::kAllreduce, name, in, &out, shape)).ok());
      }
    });
    for (const RingMemory& ring : rings) {
      std::vector<TraceRecord> records;
      RingReader(ring.span()).Read(&records, 1000);
      std::vector<std::string> seen;
      for (const TraceRecord& record : records) {
        const auto activity = static_cast<TraceActivity>(record.part & 0xff);
        const std::string way(AlgorithmName(static_cast<TraceAlgorithm>(record.part >> 8)));
        if (record.kind == TraceKind::kDone) seen.push_back("done " + way);
        if (record.kind == TraceKind::kActivity) seen.push_back(ActivityName(activity, 0));
      }
      if (!wanted) {
        EXPECT_THAT(seen, ElementsAre("done ", "done "));
      }
      if (wanted) {
        EXPECT_THAT(seen, ElementsAre("done announcement", "MEMCPY_IN_FUSION_BUFFER", "",
                                      "MEMCPY_OUT_FUSION_BUFFER", "", "done copied"));
      }
    }
  }
}

TEST_P(Operations, RanksThatDivideOtherwiseAreTold) {
  if (size() == 1) return;  // nobody to disagree with
  WorldOfThreads world(transport(), size(), [](uint32_t rank) {
    EngineOptions options;
    options.average_of_active = rank == 0;
    return options;
  });
  world.Run([&](uint32_t rank) {
    Values x{1};
    const Shape one{1};
    RequestSpec spec = SpecOf(Collective::kAllreduce, "mean", x, &x, one);
    spec.op = ReduceOp::kAverage;
    EXPECT_THAT(RunOne(world.engine(rank), spec).message(),
                HasSubstr("HOROVOD_JOIN_AVERAGE=active"));
    ExpectSum(world.engine(rank), 0, size());
  });
}

// Rank r has r more batches than rank 0.
void Operations::JoinOneByOne(bool of_active) {
  WorldOfThreads world(transport(), size(), [of_active](uint32_t) {
    EngineOptions options;
    options.average_of_active = of_active;
    return options;
  });
  std::vector<int32_t> last(size(), -2);
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    for (int generation = 0; generation < 3; ++generation) {
      for (int64_t count : {5, 20'000}) {
        for (uint32_t batch = 0; batch <= rank; ++batch) {
          Values in(static_cast<size_t>(count), rank), out(in.size());
          const Shape shape{count};
          RequestSpec spec = SpecOf(Collective::kAllreduce, "gradient", in, &out, shape);
          spec.op = batch % 2 == 0 ? ReduceOp::kMin : ReduceOp::kAverage;
          const Status status = RunOne(engine, spec);
          ASSERT_TRUE(status.ok()) << status.message();
          // Ranks batch .. size - 1 take part.
          const int64_t active = size() - batch, sum = (batch + size() - 1) * active / 2;
          const int64_t average = sum / (of_active ? active : size());
          const int64_t expected = batch % 2 == 0 ? batch : average;
          ASSERT_EQ(out, Values(in.size(), expected)) << "batch " << batch;
        }
        RequestSpec join;
        join.collective = Collective::kJoin;
        join.name = "join";
        OperationResult result;
        ASSERT_TRUE(RunFor(engine, join, &result).ok());
        last[rank] = result.last_joined_rank;
      }
    }
  });
  for (int32_t each : last) EXPECT_EQ(each, static_cast<int32_t>(size()) - 1);
}

TEST_P(Operations, WhatNeedsAJoinedRankFailsAndTheWorldGoesOn) {
  if (size() == 1) return;
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    RequestSpec join;
    join.collective = Collective::kJoin;
    join.name = "join";
    if (rank == 0) {
      Result<Engine::Handle> handle = engine.Submit(join);
      Values x{1};
      const Shape shape{1};
      EXPECT_THAT(
          engine.Submit(SpecOf(Collective::kAllreduce, "x", x, &x, shape)).status().message(),
          HasSubstr("rank 0 has joined"));
      EXPECT_TRUE(engine.Wait(*handle, Duration(-1)).ok());
    } else {
      Values in{1, 2};
      const Shape shape{2};
      const Status status = RunOne(engine, SpecOf(Collective::kAllgather, "g", in, nullptr, shape));
      EXPECT_EQ(status.code(), Code::kMismatch);
      EXPECT_THAT(status.message(), HasSubstr("needs rank 0, which has joined"));
      RequestSpec barrier;
      barrier.name = "b";
      EXPECT_TRUE(RunOne(engine, barrier).ok());
      EXPECT_TRUE(RunOne(engine, join).ok());
    }
    ExpectSum(engine, 0, size());
  });
}

TEST_P(Operations, WrongOnEveryRankIsToldToEveryRank) {
  WorldOfThreads world(transport(), size());
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    Values x{1};
    const Shape none, one{1};
    for (auto collective :
         {Collective::kAllgather, Collective::kAlltoall, Collective::kReducescatter}) {
      EXPECT_EQ(RunOne(engine, SpecOf(collective, "scalar", x, &x, none)).code(), Code::kMismatch);
    }
    RequestSpec most = SpecOf(Collective::kReducescatter, "most", x, &x, one);
    for (DType dtype : {DType::kInt64, DType::kBool}) {
      for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct, ReduceOp::kAdasum}) {
        most.tensor.dtype = dtype;
        most.op = op;
        const Status refused = RunOne(engine, most);
        EXPECT_EQ(refused.code(), Code::kMismatch) << refused.message();
        EXPECT_THAT(refused.message(), HasSubstr("takes Sum and Average only"));
      }
    }
    RequestSpec cuda = SpecOf(Collective::kAllreduce, "cuda", x, &x, one);
    if (rank == 0) cuda.device = DeviceKind::kCuda;
    EXPECT_FALSE(size() > 1 && RunOne(engine, cuda).code() != Code::kMismatch);
    if (size() == 1) {
      EXPECT_EQ(RunOne(engine, cuda).code(), Code::kUnsupported);
    }
    ExpectSum(engine, 0, size());
  });
}

TEST_P(Operations, ALeaverFailsItsSetsAndNoOther) {
  if (size() < 3) return;
  WorldOfThreads world(transport(), size());
  std::atomic<uint32_t> ready{0}, finished{0};
  world.Run([&](uint32_t rank) {
    Engine& engine = world.engine(rank);
    ASSERT_EQ(AddSet(engine, {0, 1}), 1);
    ExpectSum(engine, 0, size());
    ready.fetch_add(1);
    if (rank == size() - 1) {
      while (ready.load() != size()) std::this_thread::yield();
      return world.Leave(rank);
    }
    Values x{1};
    const Shape shape{1};
    for (int i = 0; i < 3; ++i) {
      const Status status = RunOne(engine, SpecOf(Collective::kAllreduce, "needs", x, &x, shape));
      EXPECT_EQ(status.code(), Code::kAborted);
      // Many more than a stream holds: who has left must not hold it up.
      for (int k = 0; rank < 2 && k < 3000; ++k) ExpectSum(engine, 1, 2);
    }
    Result<Engine::Handle> set = engine.SubmitAddProcessSet(std::vector<uint32_t>{0});
    ASSERT_TRUE(set.ok());
    EXPECT_EQ(engine.Wait(*set, Duration(-1)).code(), Code::kAborted);
    // Does the work of a worker's runtime thread: reads on, so that the others are not held up.
    if (rank < 2) finished.fetch_add(1);
    while (finished.load() != 2) engine.TryProgress(), std::this_thread::yield();
  });
}

// Private memory of this size needs a thread of each rank that works at it.
TEST_P(Operations, TheRuntimeThreadFinishesWhatTheApplicationDoesNotComeBackTo) {
  WorldOfThreads world(transport(), size());
  const Shape shape{20'000};
  std::vector<Values> of_rank(size(), Values(20'000, 2));
  std::vector<Engine::Handle> handles;
  for (uint32_t rank = 0; rank < size(); ++rank) {
    Values& x = of_rank[rank];
    auto handle =
        world.engine(rank).Submit(SpecOf(Collective::kAllreduce, "left alone", x, &x, shape));
    ASSERT_TRUE(handle.ok()) << handle.status().message();
    handles.push_back(*handle);
  }
  const std::vector<Values> sums(size(), Values(20'000, 2.f * static_cast<float>(size())));
  const TimePoint deadline = SteadyNow() + std::chrono::seconds(20);
  while (of_rank != sums && SteadyNow() < deadline) {
    for (uint32_t rank = 0; rank < size(); ++rank) world.engine(rank).TryProgress();
    std::this_thread::yield();
  }
  EXPECT_EQ(of_rank, sums);
  for (uint32_t rank = 0; rank < size(); ++rank) {
    EXPECT_TRUE(world.engine(rank).Wait(handles[rank], Duration(-1)).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(, Operations,
                         ::testing::Combine(::testing::Values(Transport::kShm, Transport::kInproc),
                                            ::testing::Values(1u, 2u, 3u, 4u)),
                         [](const auto& tested) { return NameOf(tested.param); });

}  // namespace
}  // namespace hvd::test
