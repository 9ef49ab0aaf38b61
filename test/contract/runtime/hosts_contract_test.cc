// The results of a group that is spread over several hosts: every collective against a reference,
// bit-equal on all ranks, for many layouts of ranks on hosts; and a clear end in every phase when
// something breaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "runtime/backends/shm/chunking.h"
#include "runtime/device/adasum.h"
#include "test/fakes/simulated_hosts.h"
#include "test/fakes/stopping_memory.h"
#include "test/support/deadline.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;

struct Layout {
  const char* name;
  std::vector<uint32_t> host_of;
};

std::ostream& operator<<(std::ostream& out, const Layout& layout) { return out << layout.name; }

const Layout kLayouts[] = {
    {"TwoAlone", {0, 1}},
    {"TwoAndOne", {0, 0, 1}},
    {"TwoByTwo", {0, 0, 1, 1}},
    {"InTurns", {0, 1, 0, 1}},
    {"OneTwoThree", {0, 1, 1, 2, 2, 2}},
    {"FourAlone", {0, 1, 2, 3}},
};

class HostsContract : public ::testing::TestWithParam<Layout> {
 protected:
  uint32_t size() const { return static_cast<uint32_t>(GetParam().host_of.size()); }
  const std::vector<uint32_t>& host_of() const { return GetParam().host_of; }
};

// A task for one tensor with `rows` rows of `row_count` elements.
SimulatedTask TaskOf(const SimulatedHosts& hosts, uint32_t rank, std::string name,
                     Collective collective, DType dtype, const void* input, void* output,
                     int64_t rows, size_t row_count = 1) {
  SimulatedTask task;
  task.name = std::move(name);
  task.group = hosts.GroupOf(rank, 0, hosts.World());
  SimulatedPart part;
  part.call.collective = collective;
  part.call.dtype = dtype;
  part.call.input = input;
  part.call.output = output;
  part.call.rows = rows;
  part.call.row_count = row_count;
  part.call.count = static_cast<size_t>(rows) * row_count;
  task.parts.push_back(std::move(part));
  return task;
}

// Small whole numbers, which every type holds exactly, also their sum over all ranks.
template <typename T>
std::vector<T> Numbers(size_t count, uint32_t rank) {
  std::vector<T> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<T>((i * 7 + rank * 3) % 11 + 1);
  return numbers;
}

template <typename T>
T Reference(ReduceOp op, size_t i, uint32_t size) {
  double total = 0;
  for (uint32_t r = 0; r < size; ++r) {
    const auto value = static_cast<double>((i * 7 + r * 3) % 11 + 1);
    if (r == 0)
      total = value;
    else if (op == ReduceOp::kMin)
      total = std::min(total, value);
    else if (op == ReduceOp::kMax)
      total = std::max(total, value);
    else
      total += value;
  }
  if (op != ReduceOp::kAverage) return static_cast<T>(total);
  if (!std::is_floating_point_v<T>) return static_cast<T>(total / size);
  return static_cast<T>(total) * static_cast<T>(1.0 / size);
}

template <typename T>
void CheckAllreduce(SimulatedHosts& hosts, uint32_t rank, DType dtype) {
  for (size_t count : {0, 1, 17, 3000, 100'003}) {
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax}) {
      std::vector<T> in = Numbers<T>(count, rank), out(count, T{99});
      SimulatedTask task = TaskOf(hosts, rank, "a", Collective::kAllreduce, dtype, in.data(),
                                  out.data(), static_cast<int64_t>(count));
      task.parts[0].call.op = op;
      Status done = hosts.Do(rank, &task);
      ASSERT_TRUE(done.ok()) << done.message();
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(out[i], Reference<T>(op, i, hosts.size()))
            << "op " << static_cast<int>(op) << ", element " << i << " of " << count;
      }
      EXPECT_EQ(in, Numbers<T>(count, rank)) << "the input must not change";
    }
  }
}

TEST_P(HostsContract, ReducesEverySizeAndOperation) {
  SimulatedHosts hosts(host_of());
  hosts.Run([&](uint32_t rank) {
    CheckAllreduce<float>(hosts, rank, DType::kFloat32);
    CheckAllreduce<double>(hosts, rank, DType::kFloat64);
    CheckAllreduce<int32_t>(hosts, rank, DType::kInt32);
    CheckAllreduce<uint8_t>(hosts, rank, DType::kUint8);
  });
}

// No sum on the way overflows, neither that of a host nor that of all: uint8 200 and 200 are 200.
template <typename T>
void CheckAveragesNearTheEnds(SimulatedHosts& hosts, uint32_t rank, DType dtype) {
  constexpr auto kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  const auto value = [](uint32_t r, size_t i) {
    switch (i % 4) {
      case 0: return static_cast<T>(kMost - static_cast<T>(r % 3));
      case 1: return static_cast<T>(kLeast + static_cast<T>(r % 3));
      case 2: return (i + r) % 2 == 0 ? kMost : kLeast;
      default: return static_cast<T>(i * 7 + r);
    }
  };
  for (size_t count : {3, 1000, 50'001}) {
    for (Collective collective : {Collective::kAllreduce, Collective::kReducescatter}) {
      for (double postscale : {1.0, 0.5}) {
        std::vector<T> in(count), out(count, T{99});
        for (size_t i = 0; i < count; ++i) in[i] = value(rank, i);
        const bool whole = collective == Collective::kAllreduce;
        SimulatedTask task = TaskOf(hosts, rank, "e", collective, dtype, in.data(),
                                    whole ? out.data() : nullptr, static_cast<int64_t>(count));
        task.parts[0].call.op = ReduceOp::kAverage;
        task.parts[0].call.postscale = postscale;
        Status done = hosts.Do(rank, &task);
        ASSERT_TRUE(done.ok()) << done.message();
        const RowRange own = RowsOf(rank, static_cast<int64_t>(count), hosts.size());
        const size_t first = whole ? 0 : static_cast<size_t>(own.first);
        const size_t results = whole ? count : static_cast<size_t>(own.count);
        const T* result = out.data();
        if (!whole) result = static_cast<const T*>(task.parts[0].result.made_output);
        for (size_t i = 0; i < results; ++i) {
          __int128 sum = 0;
          for (uint32_t r = 0; r < hosts.size(); ++r) sum += value(r, first + i);
          const T average = postscale == 1.0
                                ? static_cast<T>(sum / hosts.size())
                                : static_cast<T>(static_cast<int64_t>(static_cast<double>(sum) *
                                                                      postscale / hosts.size()));
          ASSERT_EQ(result[i], average) << NameOf(dtype) << ", element " << i << " of " << count
                                        << ", postscale " << postscale;
        }
      }
    }
  }
}

TEST_P(HostsContract, AveragesIntegersNearTheEndsOfTheirTypeExactly) {
  SimulatedHosts hosts(host_of());
  hosts.Run([&](uint32_t rank) {
    CheckAveragesNearTheEnds<uint8_t>(hosts, rank, DType::kUint8);
    CheckAveragesNearTheEnds<int8_t>(hosts, rank, DType::kInt8);
    CheckAveragesNearTheEnds<int16_t>(hosts, rank, DType::kInt16);
    CheckAveragesNearTheEnds<int32_t>(hosts, rank, DType::kInt32);
    CheckAveragesNearTheEnds<int64_t>(hosts, rank, DType::kInt64);
  });
}

// The small types cross in float32: a value rounded once on one host is rounded once on several.
TEST_P(HostsContract, RoundsTheSmallTypesOnce) {
  for (DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat8E4m3, DType::kFloat8E5m2}) {
    SimulatedHosts hosts(host_of());
    constexpr size_t kCount = 50'001;
    const size_t bytes = kCount * SizeOf(dtype);
    std::vector<std::vector<std::byte>> in(size()), out(size());
    std::vector<std::vector<float>> wide(size());
    for (uint32_t r = 0; r < size(); ++r) {
      std::mt19937 random(r + 1);
      for (size_t i = 0; i < kCount; ++i) {
        wide[r].push_back(static_cast<float>(static_cast<int>(random() % 64)) / 8.0f);
      }
      in[r].resize(bytes);
      out[r].resize(bytes);
      NarrowRange(dtype, wide[r].data(), in[r].data(), kCount);
    }
    hosts.Run([&](uint32_t rank) {
      SimulatedTask task = TaskOf(hosts, rank, "h", Collective::kAllreduce, dtype, in[rank].data(),
                                  out[rank].data(), kCount);
      task.parts[0].call.op = ReduceOp::kAverage;
      task.parts[0].call.prescale = 0.5;
      task.parts[0].call.postscale = 3.0;
      Status done = hosts.Do(rank, &task);
      ASSERT_TRUE(done.ok()) << done.message();
    });
    // Eighths: sums are exact in float32, so one host gives the same bits.
    std::vector<const void*> inputs;
    for (const auto& bytes_of : in) inputs.push_back(bytes_of.data());
    std::vector<std::byte> expected(bytes);
    void* to = expected.data();
    ReduceRange({dtype, Arithmetic::kSum, 0.5, 3.0, static_cast<double>(size())}, inputs, {&to, 1},
                0, kCount);
    for (uint32_t r = 0; r < size(); ++r) EXPECT_EQ(out[r], expected) << NameOf(dtype);
  }
}

TEST_P(HostsContract, IsBitEqualOnAllRanksAndFromRunToRun) {
  std::vector<float> first;
  for (uint32_t run = 0; run < 3; ++run) {
    SimulatedHosts hosts(host_of(), {.seed = run + 1});
    std::vector<std::vector<float>> values(size());
    hosts.Run([&](uint32_t rank) {
      std::mt19937 random(rank + 5);
      values[rank].resize(70'001);
      for (float& value : values[rank])
        value = std::exp(static_cast<float>(random() % 4000) / 99.0f);
      SimulatedTask task = TaskOf(hosts, rank, "x", Collective::kAllreduce, DType::kFloat32,
                                  values[rank].data(), values[rank].data(), 70'001);
      Status done = hosts.Do(rank, &task);
      ASSERT_TRUE(done.ok()) << done.message();
    });
    if (run == 0) first = values[0];
    for (const auto& of_rank : values) EXPECT_EQ(of_rank, first);
  }
}

// For the timeline. The first rank of a host leads there.
TEST_P(HostsContract, NotesWhatIsDoneWithTheData) {
  using enum TraceActivity;
  SimulatedHosts hosts(host_of());
  const bool straight = std::set<uint32_t>(host_of().begin(), host_of().end()).size() == size();
  hosts.Run([&](uint32_t rank) {
    const std::vector<float> in = Numbers<float>(50'000, rank);
    std::vector<float> out(in.size());
    ActivityNotes notes;
    SimulatedTask task = TaskOf(hosts, rank, "a", Collective::kAllreduce, DType::kFloat32,
                                in.data(), out.data(), 50'000);
    task.parts[0].call.activities = &notes;
    ASSERT_TRUE(hosts.Do(rank, &task).ok());
    const auto first = std::find(host_of().begin(), host_of().end(), host_of()[rank]);
    std::vector<TraceActivity> expected;
    if (!straight) expected = {kCopyIn, kNone};
    if (first - host_of().begin() == rank) {
      expected.insert(expected.end(), {kWaitForHosts, kQueue});
      if (!straight) expected.push_back(kHostReduce);
      expected.insert(expected.end(), {kExchange, kNone});
    }
    if (!straight) expected.insert(expected.end(), {kHandOut, kNone});
    std::vector<TraceActivity> seen;
    for (const ActivityNote& note : notes.all()) seen.push_back(note.activity);
    EXPECT_EQ(seen, expected) << "rank " << rank;
    EXPECT_TRUE(std::ranges::is_sorted(notes.all(), {}, &ActivityNote::stamp));
    for (const ActivityNote& note : notes.all()) {
      const bool moves = note.activity == kCopyIn || note.activity == kHostReduce ||
                         note.activity == kExchange || note.activity == kHandOut;
      EXPECT_EQ(note.bytes, moves ? 200'000U : 0U);
    }
  });
}

TEST_P(HostsContract, ReadsRegisteredMemoryWhereItIs) {
  SimulatedHosts hosts(host_of());
  hosts.Run([&](uint32_t rank) {
    constexpr int64_t kCount = 200'000;
    auto* values = static_cast<double*>(hosts.heap(rank).Allocate(kCount * sizeof(double), true));
    for (int round = 0; round < 3; ++round) {
      std::vector<double> numbers = Numbers<double>(kCount, rank);
      std::copy(numbers.begin(), numbers.end(), values);
      SimulatedTask task =
          TaskOf(hosts, rank, "g", Collective::kAllreduce, DType::kFloat64, values, values, kCount);
      ASSERT_TRUE(hosts.Do(rank, &task).ok());
      for (int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(values[i], Reference<double>(ReduceOp::kSum, i, size()));
      }
    }
  });
}

TEST_P(HostsContract, GathersUnequalRows) {
  SimulatedHosts hosts(host_of());
  hosts.Run([&](uint32_t rank) {
    for (int64_t scale : {0, 1, 900}) {
      auto rows_of = [&](uint32_t r) { return scale * ((r * 5 + 2) % 4); };
      std::vector<int32_t> in(static_cast<size_t>(rows_of(rank) * 3), static_cast<int32_t>(rank));
      SimulatedTask task = TaskOf(hosts, rank, "g", Collective::kAllgather, DType::kInt32,
                                  in.data(), nullptr, rows_of(rank), 3);
      Status done = hosts.Do(rank, &task);
      ASSERT_TRUE(done.ok()) << done.message();
      std::vector<int32_t> expected;
      for (uint32_t r = 0; r < size(); ++r) {
        expected.insert(expected.end(), static_cast<size_t>(rows_of(r) * 3),
                        static_cast<int32_t>(r));
      }
      const CollectiveResult& result = task.parts[0].result;
      EXPECT_EQ(result.rows, static_cast<int64_t>(expected.size() / 3));
      const auto* made = static_cast<const int32_t*>(result.made_output);
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(made[i], expected[i]) << i;
    }
  });
}

TEST_P(HostsContract, BroadcastsFromEveryRoot) {
  SimulatedHosts hosts(host_of());
  hosts.Run([&](uint32_t rank) {
    for (uint32_t root = 0; root < size(); ++root) {
      for (int64_t count : {0, 5, 100'001}) {
        std::vector<uint16_t> values(static_cast<size_t>(count), static_cast<uint16_t>(rank + 1));
        SimulatedTask task = TaskOf(hosts, rank, "b", Collective::kBroadcast, DType::kUint16,
                                    values.data(), values.data(), count);
        task.parts[0].call.root = root;
        Status done = hosts.Do(rank, &task);
        ASSERT_TRUE(done.ok()) << done.message();
        for (uint16_t value : values) ASSERT_EQ(value, root + 1);
      }
    }
  });
}

TEST_P(HostsContract, SendsAllToAllWithSplits) {
  SimulatedHosts hosts(host_of());
  auto rows = [](uint32_t from, uint32_t to) {
    return static_cast<int64_t>((from * 3 + to * 5) % 4) * 50;
  };
  hosts.Run([&](uint32_t rank) {
    std::vector<int64_t> splits;
    std::vector<int64_t> in;
    for (uint32_t to = 0; to < size(); ++to) {
      splits.push_back(rows(rank, to));
      in.insert(in.end(), static_cast<size_t>(2 * rows(rank, to)), rank * 100 + to);
    }
    SimulatedTask task = TaskOf(hosts, rank, "t", Collective::kAlltoall, DType::kInt64, in.data(),
                                nullptr, static_cast<int64_t>(in.size() / 2), 2);
    task.parts[0].splits = splits;
    Status done = hosts.Do(rank, &task);
    ASSERT_TRUE(done.ok()) << done.message();
    const CollectiveResult& result = task.parts[0].result;
    ASSERT_EQ(result.received_splits.size(), size());
    const auto* at = static_cast<const int64_t*>(result.made_output);
    for (uint32_t from = 0; from < size(); ++from) {
      EXPECT_EQ(result.received_splits[from], rows(from, rank));
      for (int64_t i = 0; i < 2 * rows(from, rank); ++i) ASSERT_EQ(*at++, from * 100 + rank);
    }
  });
}

TEST_P(HostsContract, ScattersUnevenRows) {
  SimulatedHosts hosts(host_of());
  hosts.Run([&](uint32_t rank) {
    for (int64_t rows : {int64_t{0}, int64_t{1}, int64_t{size()} * 2 + 1, int64_t{10'001}}) {
      std::vector<float> in = Numbers<float>(static_cast<size_t>(rows * 2), rank);
      SimulatedTask task = TaskOf(hosts, rank, "r", Collective::kReducescatter, DType::kFloat32,
                                  in.data(), nullptr, rows, 2);
      Status done = hosts.Do(rank, &task);
      ASSERT_TRUE(done.ok()) << done.message();
      int64_t first = 0, own = 0;
      for (uint32_t r = 0; r <= rank; ++r) {
        first += own;
        own = rows / size() + (r < rows % size() ? 1 : 0);
      }
      const CollectiveResult& result = task.parts[0].result;
      EXPECT_EQ(result.rows, own);
      const auto* made = static_cast<const float*>(result.made_output);
      for (int64_t i = 0; i < own * 2; ++i) {
        ASSERT_EQ(made[i],
                  Reference<float>(ReduceOp::kSum, static_cast<size_t>(first * 2 + i), size()));
      }
    }
  });
}

TEST_P(HostsContract, CombinesAdasumAsOneTree) {
  SimulatedHosts hosts(host_of());
  constexpr size_t kCount = 5000;
  std::vector<std::vector<double>> in(size()), out(size(), std::vector<double>(kCount));
  for (uint32_t r = 0; r < size(); ++r) {
    std::mt19937 random(r + 3);
    for (size_t i = 0; i < kCount; ++i)
      in[r].push_back(static_cast<double>(random() % 1000) / 500 - 1);
  }
  hosts.Run([&](uint32_t rank) {
    SimulatedTask task = TaskOf(hosts, rank, "ada", Collective::kAllreduce, DType::kFloat64,
                                in[rank].data(), out[rank].data(), kCount);
    task.parts[0].call.op = ReduceOp::kAdasum;
    Status done = hosts.Do(rank, &task);
    ASSERT_TRUE(done.ok()) << done.message();
  });
  // By hosts: the tree is that over all ranks where ranks lie in order of hosts.
  std::vector<uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return host_of()[a] < host_of()[b]; });
  std::vector<const void*> inputs;
  for (uint32_t r : order) inputs.push_back(in[r].data());
  std::vector<double> products(DotProductCount(size()), 0.0);
  AddDotProducts(DType::kFloat64, inputs, 0, kCount, products);
  const std::vector<double> weights = AdasumWeights(products, size());
  for (size_t i = 0; i < kCount; ++i) {
    double expected = 0;
    for (uint32_t k = 0; k < size(); ++k) expected += weights[k] * in[order[k]][i];
    ASSERT_NEAR(out[0][i], expected, 1e-12);
  }
  for (uint32_t r = 1; r < size(); ++r) EXPECT_EQ(out[r], out[0]);
}

TEST_P(HostsContract, WaitsForAllInABarrier) {
  SimulatedHosts hosts(host_of());
  std::atomic<uint32_t> came{0};
  hosts.Run([&](uint32_t rank) {
    for (uint32_t round = 1; round <= 20; ++round) {
      came.fetch_add(1);
      SimulatedTask task =
          TaskOf(hosts, rank, "barrier", Collective::kBarrier, DType::kUint8, nullptr, nullptr, 0);
      ASSERT_TRUE(hosts.Do(rank, &task).ok());
      EXPECT_GE(came.load(), round * size());
    }
  });
}

// Many tensors in flight, in another order on every rank, with and without fusion: the same bits.
TEST_P(HostsContract, FusesWithoutChangingABit) {
  constexpr int kTensors = 60;
  auto count_of = [](int t) { return static_cast<size_t>(t % 7 == 0 ? 9000 : 1 + t * 13); };
  std::vector<std::vector<float>> first;
  for (uint64_t fusion_bytes : {0, 1 << 20, 64 << 20}) {
    SimulatedHosts hosts(host_of(), {.fusion_bytes = fusion_bytes, .seed = 9});
    std::vector<std::vector<std::vector<float>>> tensors(size(),
                                                         std::vector<std::vector<float>>(kTensors));
    hosts.Run([&](uint32_t rank) {
      std::mt19937 random(rank + 1);
      std::vector<int> order(kTensors);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<SimulatedTask> tasks(kTensors);
      for (int t : order) {
        std::mt19937 values(static_cast<uint32_t>(t) * 100 + rank);
        tensors[rank][t].resize(count_of(t));
        for (float& value : tensors[rank][t]) value = static_cast<float>(values() % 100'000) / 7.0f;
        tasks[t] = TaskOf(hosts, rank, "t" + std::to_string(t), Collective::kAllreduce,
                          DType::kFloat32, tensors[rank][t].data(), tensors[rank][t].data(),
                          static_cast<int64_t>(count_of(t)));
        tasks[t].parts[0].call.op = ReduceOp::kAverage;
        ASSERT_TRUE(hosts.Submit(rank, &tasks[t]).ok());
      }
      const TimePoint deadline = Soon();
      for (bool all = false; !all;) {
        all = true;
        for (SimulatedTask& task : tasks) all = hosts.Turn(rank, &task) && all;
        ASSERT_LT(SteadyNow(), deadline);
        std::this_thread::yield();
      }
      for (SimulatedTask& task : tasks) ASSERT_TRUE(task.status.ok()) << task.status.message();
    });
    if (first.empty()) first = tensors[0];
    for (const auto& of_rank : tensors) EXPECT_EQ(of_rank, first) << "fusion " << fusion_bytes;
  }
}

TEST_P(HostsContract, TreatsAGroupAsOneOperation) {
  SimulatedHosts hosts(host_of());
  hosts.Run([&](uint32_t rank) {
    std::vector<float> a = Numbers<float>(10, rank), b = Numbers<float>(40'000, rank);
    std::vector<int32_t> c = Numbers<int32_t>(33, rank);
    for (bool mismatch : {true, false}) {
      SimulatedTask task = TaskOf(hosts, rank, "group", Collective::kAllreduce, DType::kFloat32,
                                  a.data(), a.data(), 10);
      task.parts.push_back(std::move(
          TaskOf(hosts, rank, "", Collective::kAllreduce, DType::kInt32, c.data(), c.data(), 33)
              .parts[0]));
      const bool odd = mismatch && host_of()[rank] == host_of().back();
      if (!odd) {
        task.parts.push_back(std::move(TaskOf(hosts, rank, "", Collective::kAllreduce,
                                              DType::kFloat32, b.data(), b.data(), 40'000)
                                           .parts[0]));
      }
      task.detail = odd ? "two parts" : "three parts";
      Status done = hosts.Do(rank, &task);
      EXPECT_EQ(done.code(), mismatch ? Code::kMismatch : Code::kOk) << done.message();
    }
    for (size_t i = 0; i < b.size(); ++i)
      ASSERT_EQ(b[i], Reference<float>(ReduceOp::kSum, i, size()));
    for (size_t i = 0; i < c.size(); ++i)
      ASSERT_EQ(c[i], Reference<int32_t>(ReduceOp::kSum, i, size()));
  });
}

TEST_P(HostsContract, TellsEveryRankHowHostsDisagreeAndGoesOn) {
  SimulatedHosts hosts(host_of());
  std::vector<std::string> sentences(size());
  hosts.Run([&](uint32_t rank) {
    for (int round = 0; round < 2; ++round) {
      std::vector<float> values(100'000, 1);
      SimulatedTask wrong = TaskOf(hosts, rank, "w", Collective::kAllreduce, DType::kFloat32,
                                   values.data(), values.data(), 100'000);
      wrong.detail = host_of()[rank] == host_of().back() ? "[5]" : "[4]";
      Status done = hosts.Do(rank, &wrong);
      EXPECT_EQ(done.code(), Code::kMismatch);
      sentences[rank] = done.message();
      SimulatedTask right = TaskOf(hosts, rank, "w", Collective::kAllreduce, DType::kFloat32,
                                   values.data(), values.data(), 100'000);
      done = hosts.Do(rank, &right);
      ASSERT_TRUE(done.ok()) << done.message();
      EXPECT_EQ(values[99'999], size());
    }
  });
  EXPECT_THAT(sentences[0], HasSubstr("has [4]"));
  EXPECT_THAT(sentences[0], HasSubstr("has [5]"));
  for (const std::string& sentence : sentences) EXPECT_EQ(sentence, sentences[0]);
}

TEST_P(HostsContract, TellsOtherHostsOfADisagreementInsideOne) {
  SimulatedHosts hosts(host_of());
  hosts.Run([&](uint32_t rank) {
    std::vector<float> values(10, 1);
    SimulatedTask task = TaskOf(hosts, rank, "d", Collective::kAllreduce, DType::kFloat32,
                                values.data(), values.data(), 10);
    if (host_of()[rank] == host_of().back()) task.disagreement = Mismatch("these two disagree");
    Status done = hosts.Do(rank, &task);
    EXPECT_EQ(done.code(), Code::kMismatch);
    EXPECT_EQ(done.message(), "these two disagree");
  });
}

// The last host joins, one rank after the other; the others reduce on, then they join as well.
TEST_P(HostsContract, GoesOnWithoutThoseThatJoined) {
  SimulatedHosts hosts(host_of());
  const uint32_t last_host = host_of().back();
  std::vector<uint32_t> joiners;
  for (uint32_t r = 0; r < size(); ++r) {
    if (host_of()[r] == last_host) joiners.push_back(r);
  }
  const uint32_t early = joiners[0];
  std::vector<int64_t> last(size(), -1);
  hosts.Run([&](uint32_t rank) {
    const Group world = hosts.GroupOf(rank, 0, hosts.World());
    const bool joins = host_of()[rank] == last_host;
    auto average = [&](const char* name, std::vector<uint8_t> joined,
                       const std::function<bool(uint32_t)>& takes_part,
                       ReduceOp op = ReduceOp::kAverage) {
      std::vector<double> values(3000, rank + 1.0);
      SimulatedTask task = TaskOf(hosts, rank, name, Collective::kAllreduce, DType::kFloat64,
                                  values.data(), values.data(), 3000);
      task.parts[0].call.op = op;
      task.joined = std::move(joined);
      Status done = hosts.Do(rank, &task);
      ASSERT_TRUE(done.ok()) << done.message();
      double sum = 0, participants = 0;
      for (uint32_t r = 0; r < size(); ++r) {
        if (!takes_part(r)) continue;
        sum += r + 1.0;
        participants += 1;
      }
      const double divisor = op == ReduceOp::kAverage ? size() : participants;
      EXPECT_DOUBLE_EQ(values[17], sum / divisor) << name;
    };
    // With one joined on the last host, if somebody is left there to lead.
    if (joiners.size() > 1 && rank != early) {
      std::vector<uint8_t> joined;
      if (joins) {
        joined.assign(world.local_size(), 0);
        joined[0] = 1;
      }
      average("without one", joined, [&](uint32_t r) { return r != early; });
      average(
          "of the others", joined, [&](uint32_t r) { return r != early; },
          ReduceOp::kActiveAverage);
      std::vector<float> rows(4);
      SimulatedTask gather = TaskOf(hosts, rank, "g", Collective::kAllgather, DType::kFloat32,
                                    rows.data(), nullptr, 4);
      gather.joined = joined;
      Status refused = hosts.Do(rank, &gather);
      EXPECT_EQ(refused.code(), Code::kMismatch);
      EXPECT_THAT(refused.message(),
                  HasSubstr("rank " + std::to_string(early) + ", which has joined"));
    }
    if (!joins) {
      const auto others = [&](uint32_t r) { return host_of()[r] != last_host; };
      average("without a host", {}, others);
      average("of the other hosts", {}, others, ReduceOp::kActiveAverage);
    }
    SimulatedTask join =
        TaskOf(hosts, rank, "join", Collective::kJoin, DType::kUint8, nullptr, nullptr, 0);
    join.parts[0].call.root = world.local_to_group.back();
    Status done = hosts.Do(rank, &join);
    ASSERT_TRUE(done.ok()) << done.message();
    last[rank] = join.parts[0].result.rows;
    average("all again", {}, [](uint32_t) { return true; });
  });
  for (int64_t rank : last) EXPECT_EQ(rank, last[0]);
  EXPECT_NE(host_of()[static_cast<size_t>(last[0])], last_host) << "the others joined later";
}

// Overlapping sets, in another order on every rank, at the same time; some of them on one host.
TEST_P(HostsContract, ServesManySetsAtOnce) {
  SimulatedHosts hosts(host_of(), {.seed = 4});
  std::vector<std::vector<uint32_t>> sets;
  for (uint32_t a = 0; a < size(); ++a) {
    for (uint32_t b = a + 1; b < size(); ++b) sets.push_back({a, b});
  }
  sets.push_back(hosts.World());
  hosts.Run([&](uint32_t rank) {
    std::mt19937 random(rank);
    for (int round = 0; round < 5; ++round) {
      std::vector<size_t> order;
      for (size_t s = 0; s < sets.size(); ++s) {
        if (std::find(sets[s].begin(), sets[s].end(), rank) != sets[s].end()) order.push_back(s);
      }
      std::shuffle(order.begin(), order.end(), random);
      std::vector<SimulatedTask> tasks(order.size());
      std::vector<std::vector<int32_t>> values(order.size());
      for (size_t t = 0; t < order.size(); ++t) {
        values[t].assign(20'000, static_cast<int32_t>(rank + 1));
        tasks[t] = TaskOf(hosts, rank, "s", Collective::kAllreduce, DType::kInt32, values[t].data(),
                          values[t].data(), 20'000);
        tasks[t].group = hosts.GroupOf(rank, static_cast<int32_t>(order[t]) + 1, sets[order[t]]);
        ASSERT_TRUE(hosts.Submit(rank, &tasks[t]).ok());
      }
      const TimePoint deadline = Soon();
      for (bool all = false; !all;) {
        all = true;
        for (SimulatedTask& task : tasks) all = hosts.Turn(rank, &task) && all;
        ASSERT_LT(SteadyNow(), deadline);
        std::this_thread::yield();
      }
      for (size_t t = 0; t < order.size(); ++t) {
        ASSERT_TRUE(tasks[t].status.ok()) << tasks[t].status.message();
        int32_t sum = 0;
        for (uint32_t r : sets[order[t]]) sum += static_cast<int32_t>(r + 1);
        ASSERT_EQ(values[t][19'999], sum);
      }
    }
  });
}

// A set of one host: while its other members are late, a rank that waits goes on as in a world of
// one host.
TEST(HostsContractOfOneHost, WorksAhead) {
  SimulatedHosts hosts({0, 0, 1});
  std::vector<uint8_t> values[2];
  CollectiveCall calls[2];
  Group groups[2];
  std::unique_ptr<OpState> states[2];
  BufferDescriptor descriptors[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    groups[rank] = hosts.GroupOf(rank, 1, {0, 1});
    values[rank].assign(1 << 20, static_cast<uint8_t>(7 + rank));
    CollectiveCall& call = calls[rank];
    call.collective = Collective::kBroadcast;
    call.rows = 1;
    call.count = call.row_count = values[rank].size();
    call.input = call.output = values[rank].data();
    call.group = &groups[rank];
    call.caller_waits = true;
    ASSERT_TRUE(hosts.backend(rank).Prepare(call, &states[rank], &descriptors[rank]).ok());
    for (int look = 0; rank == 0 && look < 1000; ++look)
      hosts.backend(0).WorkAhead(call, states[0].get());
  }
  ASSERT_FALSE(*hosts.backend(1).Start(calls[1], states[1].get(), {descriptors, {}, {}}));
  EXPECT_TRUE(*hosts.backend(1).Advance(calls[1], states[1].get())) << "without rank 0";
  EXPECT_EQ(values[1], std::vector<uint8_t>(1 << 20, 7));
  ASSERT_FALSE(*hosts.backend(0).Start(calls[0], states[0].get(), {descriptors, {}, {}}));
  EXPECT_TRUE(*hosts.backend(0).Advance(calls[0], states[0].get()));
}

// One host goes on to the next round of a name while another still takes the last one's result.
TEST_P(HostsContract, KeepsRoundsOfOneNameApart) {
  SimulatedHosts hosts(host_of(), {.seed = 8});
  hosts.Run([&](uint32_t rank) {
    for (int round = 0; round < 200; ++round) {
      std::vector<int32_t> values(5, round + static_cast<int32_t>(rank));
      SimulatedTask task = TaskOf(hosts, rank, "again", Collective::kAllreduce, DType::kInt32,
                                  values.data(), values.data(), 5);
      Status done = hosts.Do(rank, &task);
      ASSERT_TRUE(done.ok()) << done.message();
      const auto n = static_cast<int32_t>(size());
      ASSERT_EQ(values[4], n * round + n * (n - 1) / 2);
    }
  });
}

// A break at a moment drawn by the seed, in whatever phase the ranks are: nobody waits for ever,
// all say the same.
TEST_P(HostsContract, EndsInEveryPhaseWhenTheWorldBreaks) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SimulatedHosts hosts(host_of(), {.seed = seed});
    std::atomic<uint32_t> turns{0};
    const uint32_t fatal_turn = seed * seed * 40;
    hosts.Run([&](uint32_t rank) {
      for (int i = 0;; ++i) {
        std::vector<float> values(i % 3 == 0 ? 80'000 : 10, 1);
        const auto rows = static_cast<int64_t>(values.size());
        SimulatedTask task =
            TaskOf(hosts, rank, "x" + std::to_string(i % 5), Collective::kAllreduce,
                   DType::kFloat32, values.data(), values.data(), rows);
        ASSERT_TRUE(hosts.Submit(rank, &task).ok());
        while (!hosts.Turn(rank, &task)) {
          if (turns.fetch_add(1) == fatal_turn) hosts.Break("rank 1 on host b (pid 4711) died");
          std::this_thread::yield();
        }
        if (task.status.ok()) continue;
        EXPECT_EQ(task.status.code(), Code::kAborted);
        EXPECT_EQ(task.status.message(), "rank 1 on host b (pid 4711) died") << "seed " << seed;
        return;
      }
    });
  }
}

// The connection between hosts breaks and no launcher says anything.
TEST_P(HostsContract, EndsWhenTheConnectionBreaks) {
  SimulatedHosts hosts(host_of());
  std::barrier warmed(size());
  hosts.Run([&](uint32_t rank) {
    std::vector<float> values(50'000, 1);
    SimulatedTask warm = TaskOf(hosts, rank, "x", Collective::kAllreduce, DType::kFloat32,
                                values.data(), values.data(), 50'000);
    ASSERT_TRUE(hosts.Do(rank, &warm).ok());
    warmed.arrive_and_wait();
    if (rank == 0) hosts.comm(0).Abort(Aborted("the connection to host b broke"));
    SimulatedTask task = TaskOf(hosts, rank, "y", Collective::kAllreduce, DType::kFloat32,
                                values.data(), values.data(), 50'000);
    Status done = hosts.Do(rank, &task);
    EXPECT_EQ(done.code(), Code::kAborted);
    EXPECT_EQ(done.message(), "the connection to host b broke");
  });
}

TEST_P(HostsContract, FailsWhatNeedsARankThatLeft) {
  SimulatedHosts hosts(host_of());
  const uint32_t leaver = size() - 1, last_host = host_of().back();
  hosts.Run([&](uint32_t rank) {
    std::vector<float> values(10, 1);
    SimulatedTask warm = TaskOf(hosts, rank, "x", Collective::kAllreduce, DType::kFloat32,
                                values.data(), values.data(), 10);
    ASSERT_TRUE(hosts.Do(rank, &warm).ok());
    if (rank == leaver) return hosts.Leave(rank);
    if (host_of()[rank] == last_host) return;  // its engine sees the neighbour leave
    SimulatedTask task = TaskOf(hosts, rank, "y", Collective::kAllreduce, DType::kFloat32,
                                values.data(), values.data(), 10);
    Status done = hosts.Do(rank, &task);
    EXPECT_EQ(done.code(), Code::kAborted);
    EXPECT_THAT(done.message(), HasSubstr("rank " + std::to_string(leaver) + " left the world"));
    EXPECT_THAT(done.message(), HasSubstr("'y'"));
  });
}

// Rank 0 is the coordinator, and has gone before it heard anything of the others. Nobody waits for
// its answer.
TEST_P(HostsContract, LeavesAfterRankZeroHasLeft) {
  constexpr Duration kNever = std::chrono::hours(1);
  SimulatedHosts hosts(host_of(), {.cause_grace = kNever, .goodbye = kNever});
  hosts.Leave(0);
  for (uint32_t rank = 1; rank < size(); ++rank) hosts.Leave(rank);
}

TEST_P(HostsContract, NothingCrossesAfterRankZeroHasLeft) {
  SimulatedHosts hosts(host_of());
  hosts.Leave(0);
  hosts.Run([&](uint32_t rank) {
    if (host_of()[rank] == host_of()[0]) return;  // its engine sees the neighbour leave
    std::vector<float> values(10, 1);
    for (const char* name : {"x", "y"}) {
      SimulatedTask task = TaskOf(hosts, rank, name, Collective::kAllreduce, DType::kFloat32,
                                  values.data(), values.data(), 10);
      Status done = hosts.Do(rank, &task);
      EXPECT_EQ(done.code(), Code::kAborted);
      EXPECT_THAT(done.message(), HasSubstr("rank 0, which arranges the work of all hosts"));
      EXPECT_THAT(done.message(), HasSubstr("left"));
    }
  });
}

// Message pieces: a detail that is longer than the longest message.
TEST_P(HostsContract, CarriesDetailsOfAnySize) {
  SimulatedHosts hosts(host_of());
  hosts.Run([&](uint32_t rank) {
    std::vector<float> values(10, 1);
    SimulatedTask task = TaskOf(hosts, rank, "big", Collective::kAllreduce, DType::kFloat32,
                                values.data(), values.data(), 10);
    task.detail = std::string(200'000, 'd');
    Status done = hosts.Do(rank, &task);
    ASSERT_TRUE(done.ok()) << done.message();
    EXPECT_EQ(values[0], size());
  });
}

// Rank 2 is dead, and the launcher's word has reached host 0 only. It must not pass for the cause
// elsewhere.
TEST(HostsBreak, IsToldToOtherHostsWithItsCause) {
  const std::string cause = "rank 2 on host c (pid 4711) died";
  for (const Collective collective : {Collective::kAllreduce, Collective::kBroadcast}) {
    SimulatedHosts hosts({0, 1, 2});
    hosts.Run([&](uint32_t rank) {
      if (rank == 2) return;
      std::vector<float> values(10, 1);
      SimulatedTask task = TaskOf(hosts, rank, "b", collective, DType::kFloat32, values.data(),
                                  values.data(), values.size());
      ASSERT_TRUE(hosts.Submit(rank, &task).ok());
      if (rank == 0) {
        ASSERT_FALSE(hosts.Turn(rank, &task));
        hosts.BreakOn(0, cause);
      }
      Status done = hosts.Wait(rank, &task);
      EXPECT_EQ(done.code(), Code::kAborted);
      EXPECT_THAT(done.message(), HasSubstr(cause));
    });
  }
}

// The neighbour may be stopped for good; the others are told all the same, and its chunk stays its
// own.
TEST(HostsBreak, IsToldThoughANeighbourStoppedInTheMiddleOfAChunk) {
  constexpr size_t kCount = 400'000;
  SimulatedHosts hosts({0, 0, 1, 1}, {.chunk_limit = std::chrono::milliseconds(1)});
  float* values[4];
  SimulatedTask tasks[4];
  for (uint32_t r = 0; r < 4; ++r) {
    values[r] = static_cast<float*>(hosts.heap(r).Allocate(kCount * sizeof(float), true));
    tasks[r] = TaskOf(hosts, r, "x", Collective::kAllreduce, DType::kFloat32, values[r], values[r],
                      kCount);
    ASSERT_TRUE(hosts.Submit(r, &tasks[r]).ok());
  }
  // The leader stops first, so that it leaves something to take.
  StoppingMemory of_leader(values[2], kCount * sizeof(float));
  std::thread leader([&] {
    const Status done = hosts.Wait(2, &tasks[2]);
    EXPECT_EQ(done.code(), Code::kAborted);
    EXPECT_THAT(done.message(), HasSubstr("a cable was pulled"));
  });
  of_leader.AwaitStop();
  StoppingMemory of_member(values[3], kCount * sizeof(float));
  std::thread member([&] { EXPECT_EQ(hosts.Wait(3, &tasks[3]).code(), Code::kAborted); });
  of_member.AwaitStop();
  of_leader.LetGo();
  hosts.comm(2).Abort(Aborted("a cable was pulled"));
  leader.join();  // while the member is in its chunk
  of_member.LetGo();
  member.join();
  for (uint32_t r = 0; r < 2; ++r) EXPECT_EQ(hosts.Wait(r, &tasks[r]).code(), Code::kAborted);
}

INSTANTIATE_TEST_SUITE_P(, HostsContract, ::testing::ValuesIn(kLayouts),
                         [](const auto& tested) { return std::string(tested.param.name); });

// On its own host by its rank, on the others as one of its host.
TEST(HostsStall, NamesWhoStoppedInTheMiddleOfAChunk) {
  constexpr size_t kCount = 400'000;
  SimulatedHosts hosts({0, 0, 1, 1});
  float* values[4];
  SimulatedTask tasks[4];
  for (uint32_t r = 0; r < 4; ++r) {
    values[r] = static_cast<float*>(hosts.heap(r).Allocate(kCount * sizeof(float), true));
    tasks[r] = TaskOf(hosts, r, "x", Collective::kAllreduce, DType::kFloat32, values[r], values[r],
                      kCount);
    ASSERT_TRUE(hosts.Submit(r, &tasks[r]).ok());
  }
  auto awaits = [&](uint32_t rank) {
    const SimulatedPart& part = tasks[rank].parts[0];
    return hosts.backend(rank).Awaits(part.call, part.state.get());
  };
  {
    // The leader stops first, so that it leaves something to take.
    StoppingMemory of_leader(values[2], kCount * sizeof(float));
    std::thread leader([&] { EXPECT_TRUE(hosts.Wait(2, &tasks[2]).ok()); });
    of_leader.AwaitStop();
    StoppingMemory of_member(values[3], kCount * sizeof(float));
    std::thread member([&] { EXPECT_TRUE(hosts.Wait(3, &tasks[3]).ok()); });
    of_member.AwaitStop();
    EXPECT_EQ(awaits(3), "for rank 2 to finish its part");
    of_leader.LetGo();
    EXPECT_EQ(awaits(2), "for rank 3 to finish its part");
    const TimePoint deadline = Soon();
    for (std::string said; said != "for its data to cross to the host of rank 2";) {
      for (uint32_t r = 0; r < 2; ++r) EXPECT_FALSE(hosts.Turn(r, &tasks[r]));
      said = awaits(0);
      ASSERT_LT(SteadyNow(), deadline) << said;
    }
    EXPECT_EQ(awaits(2), "for rank 3 to finish its part");
    of_member.LetGo();
    leader.join();
    member.join();
  }
  for (uint32_t r = 0; r < 2; ++r) EXPECT_TRUE(hosts.Wait(r, &tasks[r]).ok());
}

// One message to the coordinator and one from it, with the data in both.
TEST(HostsTraffic, ASmallSumThatIsAloneTakesTwoMessages) {
  SimulatedHosts hosts({0, 0, 1, 1});
  auto sum = [&](uint32_t rank) {
    std::vector<float> values = Numbers<float>(100, rank);
    SimulatedTask task = TaskOf(hosts, rank, "x", Collective::kAllreduce, DType::kFloat32,
                                values.data(), values.data(), 100);
    ASSERT_TRUE(hosts.Do(rank, &task).ok());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], Reference<float>(ReduceOp::kSum, i, hosts.size()));
  };
  const size_t before = hosts.sent_messages();
  hosts.Run(sum);
  EXPECT_EQ(hosts.sent_messages(), before + 2);
}

// Only leaders speak with other hosts: the bytes that cross do not grow with the ranks of a host.
TEST(HostsTraffic, GrowsWithHostsNotWithRanks) {
  auto crossed = [](std::vector<uint32_t> host_of) {
    SimulatedHosts hosts(std::move(host_of));
    hosts.Run([&](uint32_t rank) {
      std::vector<float> values(250'000, 1);
      SimulatedTask task = TaskOf(hosts, rank, "x", Collective::kAllreduce, DType::kFloat32,
                                  values.data(), values.data(), 250'000);
      ASSERT_TRUE(hosts.Do(rank, &task).ok());
    });
    size_t bytes = 0;
    for (uint32_t r = 0; r < hosts.size(); ++r) bytes += hosts.sent_bytes(r);
    return bytes;
  };
  const size_t alone = crossed({0, 1}), three_each = crossed({0, 0, 0, 1, 1, 1});
  EXPECT_GE(alone, 2'000'000u) << "each half goes over once and comes back combined";
  EXPECT_LT(alone, 2'010'000u);
  EXPECT_LT(three_each, alone + 10'000);
}

}  // namespace
}  // namespace hvd::test
