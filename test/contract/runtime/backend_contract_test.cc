// The duties of every Backend to the engine, for one host: the right result for every collective,
// type, size, group and kind of memory, whatever the order in which the members go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/backends/shm/buffer_leases.h"
#include "runtime/backends/shm/chunking.h"
#include "runtime/backends/shm/gather_plan.h"
#include "runtime/backends/shm/staging_ring.h"
#include "test/fakes/adasum_definition.h"
#include "test/fakes/element_values.h"
#include "test/fakes/scheduled_members.h"
#include "test/fakes/stopping_memory.h"

namespace hvd::test {
namespace {

// Of this host, in bytes.
size_t AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    size_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib << 10;
  }
  return 0;
}

enum class Memory { kPrivate, kRegistered, kInPlace, kRegisteredInPlace, kMade };
// Whose threads stay with the operation: CollectiveCall::caller_waits.
enum class Waiting { kNobody, kAll, kSome };

// One operation as the test wants it.
struct Case {
  Collective collective = Collective::kAllreduce;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> rows;  // of each member's input
  size_t row_count = 3;
  uint32_t root = 0;
  std::vector<std::vector<int64_t>> splits;  // by member; empty: equal shares
  double prescale = 1, postscale = 1;
  Memory memory = Memory::kPrivate;
  std::vector<uint8_t> joined;
  Waiting waiting = Waiting::kNobody;
  bool last_registered = false;  // the last member has registered memory, whatever the others have
};

bool MakesOutput(Collective collective) {
  return collective == Collective::kAllgather || collective == Collective::kAlltoall ||
         collective == Collective::kReducescatter;
}

double InputAt(const Case& c, uint32_t member, size_t i) {
  const auto pick = (i * 7 + member * 3 + i / 251) % (c.op == ReduceOp::kProduct ? 2 : 3);
  if (c.dtype == DType::kBool) return (i * 7 + member * 3 + i / 5) % 3 == 0 ? 1 : 0;
  return static_cast<double>(pick + (c.op == ReduceOp::kProduct ? 1 : 0));
}

double Reduced(const Case& c, size_t i) {
  double total = 0, participants = 0;
  for (uint32_t m = 0; m < c.rows.size(); ++m) {
    if (!c.joined.empty() && c.joined[m] != 0) continue;
    const double value = InputAt(c, m, i) * c.prescale;
    if (participants++ == 0)
      total = value;
    else if (c.op == ReduceOp::kMin)
      total = std::min(total, value);
    else if (c.op == ReduceOp::kMax)
      total = std::max(total, value);
    else if (c.op == ReduceOp::kProduct)
      total *= value;
    else
      total += value;
  }
  if (c.dtype == DType::kBool) return total != 0 ? 1 : 0;
  total *= c.postscale;
  total /=
      DivisorOf(c.op, static_cast<uint32_t>(c.rows.size()), static_cast<uint32_t>(participants));
  return HoldsIntegers(c.dtype) ? std::trunc(total) : total;
}

struct Expected {
  std::vector<double> values;
  std::vector<int64_t> received_splits;
};

Expected ExpectedOf(const Case& c, uint32_t self) {
  Expected expected;
  const auto members = static_cast<uint32_t>(c.rows.size());
  auto append = [&](uint32_t m, int64_t first_row, int64_t rows) {
    for (size_t i = 0; i < static_cast<size_t>(rows) * c.row_count; ++i) {
      expected.values.push_back(InputAt(c, m, static_cast<size_t>(first_row) * c.row_count + i));
    }
  };
  const size_t count = static_cast<size_t>(c.rows[self]) * c.row_count;
  switch (c.collective) {
    case Collective::kAllreduce:
      for (size_t i = 0; i < count; ++i) expected.values.push_back(Reduced(c, i));
      break;
    case Collective::kBroadcast: append(c.root, 0, c.rows[c.root]); break;
    case Collective::kAllgather:
      for (uint32_t m = 0; m < members; ++m) append(m, 0, c.rows[m]);
      break;
    case Collective::kAlltoall:
      for (uint32_t m = 0; m < members; ++m) {
        const int64_t equal = c.rows[m] / members;
        int64_t first = equal * self, rows = equal;
        if (!c.splits.empty()) {
          first = std::accumulate(c.splits[m].begin(), c.splits[m].begin() + self, int64_t{0});
          rows = c.splits[m][self];
        }
        append(m, first, rows);
        expected.received_splits.push_back(rows);
      }
      break;
    case Collective::kReducescatter: {
      size_t first = 0;
      for (uint32_t m = 0; m <= self; ++m) {
        const bool more = m < c.rows[0] % members;
        const size_t rows = static_cast<size_t>(c.rows[0] / members) + (more ? 1 : 0);
        for (size_t i = 0; m == self && i < rows * c.row_count; ++i) {
          expected.values.push_back(Reduced(c, first + i));
        }
        first += rows * c.row_count;
      }
      break;
    }
    default: break;
  }
  return expected;
}

constexpr ReduceOp kElementwise[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin,
                                     ReduceOp::kMax, ReduceOp::kProduct};

class BackendContract : public ::testing::TestWithParam<std::tuple<Kind, uint32_t>> {
 protected:
  Kind kind() const { return std::get<0>(GetParam()); }
  uint32_t size() const { return std::get<1>(GetParam()); }
  ScheduledMembers& members() { return members_; }

  // The model knows a few types.
  bool Reduces(DType dtype) const {
    return kind() != Kind::kInproc || dtype == DType::kUint8 || dtype == DType::kInt32 ||
           dtype == DType::kInt64 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
  }
  // Calls use(type, op) for each of these types and each elementwise operation that it has.
  template <typename Use>
  void ForEachReduction(const Use& use) {
    for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
      const auto type = static_cast<DType>(dtype);
      if (!Reduces(type)) continue;
      for (ReduceOp op : kElementwise) {
        if (op != ReduceOp::kAverage || CanAverage(type)) use(type, op);
      }
    }
  }
  std::vector<int64_t> Rows(int64_t rows) const { return std::vector<int64_t>(size(), rows); }

  // Runs the cases beside each other and compares every byte of every output.
  void Check(const std::vector<Case>& cases, uint32_t seed, std::optional<uint32_t> late = {}) {
    std::vector<Operation> operations;
    for (const Case& c : cases) operations.push_back(Make(c));
    members_.Run(operations, seed, late);
    for (size_t k = 0; k < cases.size(); ++k) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", operation " + std::to_string(k) + ", " +
                   Describe(cases[k]));
      for (uint32_t m = 0; m < size(); ++m) {
        if (operations[k].Takes(m)) Compare(cases[k], m, operations[k].parts[m]);
      }
    }
    Free();
  }

  Operation Make(const Case& c) {
    Operation operation;
    operation.parts.resize(size());
    operation.joined = c.joined;
    for (uint32_t m = 0; m < size(); ++m) {
      if (operation.Takes(m)) MakePart(c, m, &operation.parts[m]);
    }
    return operation;
  }

  void MakePart(const Case& c, uint32_t m, Part* part) {
    CollectiveCall& call = part->call;
    call.collective = c.collective;
    call.op = c.op;
    call.dtype = c.dtype;
    call.root = c.root;
    call.rows = c.rows[m];
    call.row_count = c.row_count;
    call.count = static_cast<size_t>(c.rows[m]) * c.row_count;
    call.prescale = c.prescale;
    call.postscale = c.postscale;
    if (!c.splits.empty()) part->splits = c.splits[m];
    const size_t expected_bytes = ExpectedFor(c, m).values.size() * SizeOf(c.dtype);
    const bool in_place = c.memory == Memory::kInPlace || c.memory == Memory::kRegisteredInPlace;
    const bool registered = c.memory == Memory::kRegistered ||
                            c.memory == Memory::kRegisteredInPlace ||
                            (c.last_registered && m + 1 == size());
    call.caller_waits = c.waiting == Waiting::kAll || (c.waiting == Waiting::kSome && m % 2 == 0);
    std::byte* input = Take(m, registered, std::max(call.bytes(), in_place ? expected_bytes : 0));
    for (size_t i = 0; i < call.count; ++i) {
      Write(c.dtype, InputAt(c, m, i), input + i * SizeOf(c.dtype));
    }
    call.input = input;
    if (in_place)
      call.output = input;
    else if (c.memory != Memory::kMade || !MakesOutput(c.collective))
      call.output = Take(m, registered, expected_bytes);
  }

  std::byte* Take(uint32_t m, bool registered, size_t bytes) {
    if (registered) {
      void* memory = members_.member(m).heap.Allocate(bytes, /*zeroed=*/false);
      registered_.emplace_back(m, memory);
      return static_cast<std::byte*>(memory);
    }
    private_.push_back(std::make_unique<Bytes>(bytes + 1));
    return private_.back()->data();
  }

  void Free() {
    for (auto [m, memory] : registered_) EXPECT_TRUE(members_.member(m).heap.Free(memory));
    registered_.clear();
    private_.clear();
    expected_.clear();
  }

  // Computed once, since it is most of the work of these tests. Members that add up as many
  // elements all expect the same.
  const Expected& ExpectedFor(const Case& c, uint32_t m) {
    const bool same = c.collective == Collective::kAllreduce && c.rows[m] == c.rows[0];
    const auto [at, fresh] = expected_.try_emplace({&c, same ? 0 : m});
    if (fresh) at->second = ExpectedOf(c, m);
    return at->second;
  }

  void Compare(const Case& c, uint32_t m, const Part& part) {
    const Expected& expected = ExpectedFor(c, m);
    ASSERT_EQ(part.stage, Part::Stage::kDone);
    ASSERT_EQ(part.output.size(), expected.values.size() * SizeOf(c.dtype)) << "member " << m;
    if (c.collective == Collective::kAlltoall) {
      EXPECT_EQ(part.result.received_splits, expected.received_splits);
    }
    for (size_t i = 0; i < expected.values.size(); ++i) {
      const double value = Read(c.dtype, part.output.data() + i * SizeOf(c.dtype));
      const double allowed = std::fabs(expected.values[i]) * Precision(c.dtype);
      if (std::fabs(value - expected.values[i]) <= allowed) continue;
      FAIL() << "member " << m << ", element " << i << " is " << value << ", expected "
             << expected.values[i];
    }
  }

  std::string Describe(const Case& c) const {
    return "collective " + std::to_string(static_cast<int>(c.collective)) + ", op " +
           std::to_string(static_cast<int>(c.op)) + ", " + std::string(NameOf(c.dtype)) +
           ", rows of the first " + std::to_string(c.rows[0]) + ", memory " +
           std::to_string(static_cast<int>(c.memory)) + ", waiting " +
           std::to_string(static_cast<int>(c.waiting));
  }

 private:
  ScheduledMembers members_{std::get<0>(GetParam()), std::get<1>(GetParam())};
  std::vector<std::pair<uint32_t, void*>> registered_;
  std::vector<std::unique_ptr<Bytes>> private_;
  std::map<std::pair<const Case*, uint32_t>, Expected> expected_;  // of the cases of a Check
};

// Rows of 3 elements: nothing, one, a few, near the limit of what travels in a request, several
// chunks, in place.
constexpr int64_t kRows[] = {0, 1, 7, 300, 2731, 24'001};
constexpr Memory kAllMemory[] = {Memory::kPrivate, Memory::kRegistered, Memory::kInPlace,
                                 Memory::kRegisteredInPlace, Memory::kMade};

TEST_P(BackendContract, AllreducesEveryTypeAndOperation) {
  uint32_t seed = 1;
  ForEachReduction([&](DType type, ReduceOp op) {
    std::vector<Case> cases;
    for (int64_t rows : {7, 3000}) {
      cases.push_back({.op = op, .dtype = type, .rows = Rows(rows)});
      cases.push_back({.op = op, .dtype = type, .rows = Rows(rows), .postscale = 0.5});
      if (op == ReduceOp::kProduct) continue;  // it would leave the small types
      cases.push_back(
          {.op = op, .dtype = type, .rows = Rows(rows), .prescale = 2, .postscale = 0.5});
    }
    Check(cases, ++seed);
  });
}

TEST_P(BackendContract, AllreducesEverySizeInEveryMemory) {
  uint32_t seed = 100;
  for (int64_t rows : kRows) {
    std::vector<Case> cases;
    for (Memory memory : kAllMemory) cases.push_back({.rows = Rows(rows), .memory = memory});
    Check(cases, ++seed);
  }
}

// Rows of 3 float32, of members that wait: less than a slot, just not more than all slots and just
// more, whole chunks, several rounds of the slots, an odd end.
constexpr int64_t kRingRows[] = {1'400, 21'845, 21'846, 65'536, 70'003};

TEST_P(BackendContract, AllreducesAmongThoseWhoWait) {
  uint32_t seed = 1100;
  for (int64_t rows : kRingRows) {
    std::vector<Case> cases;
    for (Waiting waiting : {Waiting::kAll, Waiting::kSome}) {
      for (Memory memory : {Memory::kPrivate, Memory::kInPlace}) {
        cases.push_back({.rows = Rows(rows), .memory = memory, .waiting = waiting});
      }
      cases.push_back({.op = ReduceOp::kAverage,
                       .rows = Rows(rows),
                       .prescale = 2,
                       .postscale = 0.5,
                       .waiting = waiting,
                       .last_registered = true});
    }
    Check(cases, ++seed);
  }
}

TEST_P(BackendContract, AllreducesEveryTypeAndOperationAmongThoseWhoWait) {
  uint32_t seed = 1200;
  ForEachReduction([&](DType type, ReduceOp op) {
    std::vector<Case> cases;
    for (int64_t rows : {int64_t{3000}, int64_t{100'001} / static_cast<int64_t>(SizeOf(type))}) {
      cases.push_back({.op = op, .dtype = type, .rows = Rows(rows), .waiting = Waiting::kAll});
      if (op == ReduceOp::kProduct) continue;  // it would leave the small types
      cases.push_back({.op = op,
                       .dtype = type,
                       .rows = Rows(rows),
                       .prescale = 2,
                       .postscale = 0.5,
                       .memory = Memory::kInPlace,
                       .waiting = Waiting::kAll});
    }
    Check(cases, ++seed);
  });
}

// Values whose sum depends on the order in which they are added.
TEST_P(BackendContract, HasTheSameBitsWhoeverWaits) {
  if (kind() == Kind::kInproc) return;
  constexpr size_t kCount = 200'003;
  std::vector<Bytes> outputs;
  for (Waiting waiting : {Waiting::kNobody, Waiting::kAll, Waiting::kSome}) {
    Case c{.row_count = kCount, .waiting = waiting};
    c.rows = Rows(1);
    std::vector<Operation> operations;
    operations.push_back(Make(c));
    for (uint32_t m = 0; m < size(); ++m) {
      std::mt19937 random(m + 1);
      std::uniform_real_distribution<float> value(-1, 1);
      auto* input = static_cast<float*>(const_cast<void*>(operations[0].parts[m].call.input));
      for (size_t i = 0; i < kCount; ++i) input[i] = value(random);
    }
    members().Run(operations, 1300);
    for (Part& part : operations[0].parts) outputs.push_back(std::move(part.output));
    Free();
  }
  for (const Bytes& output : outputs) ASSERT_EQ(output, outputs[0]);
}

TEST_P(BackendContract, NeedsWhoIsLateWhereAllWait) {
  if (size() == 1 || kind() == Kind::kInproc) return;
  uint32_t seed = 1400;
  for (uint32_t late = 0; late < size(); ++late) {
    Check({{.rows = Rows(70'003), .waiting = Waiting::kAll},
           {.rows = Rows(3'000), .waiting = Waiting::kAll},
           {.rows = Rows(70'003), .waiting = Waiting::kAll, .last_registered = true}},
          ++seed, late);
  }
}

TEST_P(BackendContract, LeavesOutWhoHasJoined) {
  uint32_t seed = 200;
  for (int64_t rows : {5, 9'000}) {
    for (uint32_t mask = 1; mask + 1 < (1u << size()); ++mask) {
      std::vector<uint8_t> joined;
      for (uint32_t m = 0; m < size(); ++m) joined.push_back((mask >> m) & 1);
      std::vector<Case> cases;
      cases.push_back({.op = ReduceOp::kAverage,
                       .rows = Rows(rows * 6),
                       .joined = joined,
                       .waiting = Waiting::kAll});
      for (Memory memory : {Memory::kPrivate, Memory::kRegisteredInPlace}) {
        for (ReduceOp op : {ReduceOp::kAverage, ReduceOp::kActiveAverage, ReduceOp::kProduct}) {
          cases.push_back({.op = op, .rows = Rows(rows), .memory = memory, .joined = joined});
        }
      }
      Check(cases, ++seed);
    }
  }
}

TEST_P(BackendContract, Gathers) {
  uint32_t seed = 300;
  for (int64_t rows : kRows) {
    std::vector<int64_t> unequal;
    for (uint32_t m = 0; m < size(); ++m) unequal.push_back(m == 1 ? 0 : rows + m);
    std::vector<int64_t> one(size(), 0);
    one.back() = rows;
    std::vector<Case> cases;
    for (Memory memory : {Memory::kPrivate, Memory::kRegistered, Memory::kMade}) {
      for (const auto& extent : {Rows(rows), unequal, one}) {
        cases.push_back({.collective = Collective::kAllgather,
                         .dtype = seed % 2 == 0 ? DType::kInt16 : DType::kFloat64,
                         .rows = extent,
                         .memory = memory});
      }
    }
    Check(cases, ++seed);
  }
}

TEST_P(BackendContract, Broadcasts) {
  uint32_t seed = 400;
  for (int64_t rows : kRows) {
    std::vector<Case> cases;
    for (Memory memory : kAllMemory) {
      cases.push_back({.collective = Collective::kBroadcast,
                       .rows = Rows(rows),
                       .root = seed % size(),
                       .memory = memory});
    }
    Check(cases, ++seed);
  }
}

TEST_P(BackendContract, ExchangesAllToAll) {
  uint32_t seed = 500;
  for (int64_t rows : kRows) {
    std::vector<std::vector<int64_t>> splits(size());
    std::vector<int64_t> unequal;
    for (uint32_t m = 0; m < size(); ++m) {
      for (uint32_t k = 0; k < size(); ++k) splits[m].push_back((m + k) % 3 == 1 ? 0 : rows + k);
      unequal.push_back(std::accumulate(splits[m].begin(), splits[m].end(), int64_t{2}));
    }
    std::vector<Case> cases;
    for (Memory memory : {Memory::kPrivate, Memory::kRegistered, Memory::kMade}) {
      cases.push_back({.collective = Collective::kAlltoall,
                       .dtype = DType::kInt32,
                       .rows = Rows(rows * size()),
                       .memory = memory});
      cases.push_back({.collective = Collective::kAlltoall,
                       .rows = unequal,
                       .splits = splits,
                       .memory = memory});
    }
    Check(cases, ++seed);
  }
}

TEST_P(BackendContract, ReducesAndScatters) {
  uint32_t seed = 600;
  for (int64_t rows : kRows) {
    std::vector<Case> cases;
    for (Memory memory : kAllMemory) {
      for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
        cases.push_back(
            {.collective = Collective::kReducescatter,
             .op = op,
             .dtype = seed % 2 == 0 && Reduces(DType::kBfloat16) ? DType::kBfloat16 : DType::kInt32,
             .rows = Rows(rows),
             .memory = memory});
      }
    }
    Check(cases, ++seed);
  }
}

// Of members that wait: all that moves rows, equal and not, some of them none, in every memory.
TEST_P(BackendContract, GathersAmongThoseWhoWait) {
  uint32_t seed = 1500;
  for (int64_t rows : {0, 1, 1'400, 9'001}) {
    for (Waiting waiting : {Waiting::kAll, Waiting::kSome}) {
      std::vector<int64_t> unequal, sent;
      std::vector<std::vector<int64_t>> splits(size());
      for (uint32_t m = 0; m < size(); ++m) {
        unequal.push_back(m == 1 ? 0 : rows + m);
        for (uint32_t k = 0; k < size(); ++k) splits[m].push_back((m + k) % 3 == 1 ? 0 : rows + k);
        sent.push_back(std::accumulate(splits[m].begin(), splits[m].end(), int64_t{2}));
      }
      std::vector<Case> cases;
      for (Memory memory : kAllMemory) {
        const bool in_place = memory == Memory::kInPlace || memory == Memory::kRegisteredInPlace;
        for (Collective collective : {Collective::kBroadcast, Collective::kReducescatter,
                                      Collective::kAllgather, Collective::kAlltoall}) {
          const bool gathers =
              collective == Collective::kAllgather || collective == Collective::kAlltoall;
          if (in_place && gathers && kind() == Kind::kInproc) continue;  // the model cannot
          const int64_t each = collective == Collective::kAlltoall ? rows * size() : rows;
          cases.push_back({.collective = collective,
                           .dtype = seed % 2 == 0 ? DType::kInt32 : DType::kFloat64,
                           .rows = Rows(each),
                           .root = seed % size(),
                           .memory = memory,
                           .waiting = waiting,
                           .last_registered = seed % 3 == 0});
        }
        if (in_place) continue;
        cases.push_back({.collective = Collective::kAllgather,
                         .rows = unequal,
                         .memory = memory,
                         .waiting = waiting});
        cases.push_back({.collective = Collective::kAlltoall,
                         .rows = sent,
                         .splits = splits,
                         .memory = memory,
                         .waiting = waiting});
      }
      Check(cases, ++seed);
    }
  }
}

// Values whose sum depends on the order in which they are added, and rows that do not divide.
TEST_P(BackendContract, ScattersTheSameBitsWhoeverWaits) {
  if (kind() == Kind::kInproc) return;
  constexpr int64_t kRows = 40'009;
  std::vector<std::vector<Bytes>> outputs;
  for (Waiting waiting : {Waiting::kNobody, Waiting::kAll, Waiting::kSome}) {
    Case c{.collective = Collective::kReducescatter, .rows = Rows(kRows), .waiting = waiting};
    std::vector<Operation> operations;
    operations.push_back(Make(c));
    for (uint32_t m = 0; m < size(); ++m) {
      std::mt19937 random(m + 1);
      std::uniform_real_distribution<float> value(-1, 1);
      auto* input = static_cast<float*>(const_cast<void*>(operations[0].parts[m].call.input));
      for (size_t i = 0; i < operations[0].parts[m].call.count; ++i) input[i] = value(random);
    }
    members().Run(operations, 1600);
    outputs.emplace_back();
    for (Part& part : operations[0].parts) outputs.back().push_back(std::move(part.output));
    Free();
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_EQ(outputs[0], outputs[2]);
}

// The others come to their end as far as they do not read what the late one has.
TEST_P(BackendContract, NeedsWhoIsLateToSendWhereAllWait) {
  if (size() == 1 || kind() == Kind::kInproc) return;
  uint32_t seed = 1700;
  for (uint32_t late = 0; late < size(); ++late) {
    std::vector<Case> cases;
    for (Collective collective : {Collective::kAllgather, Collective::kBroadcast,
                                  Collective::kAlltoall, Collective::kReducescatter}) {
      cases.push_back(
          {.collective = collective, .rows = Rows(20'000 * size()), .waiting = Waiting::kAll});
    }
    Check(cases, ++seed, late);
  }
}

TEST_P(BackendContract, LetsEverybodyThroughABarrier) {
  Check({{.collective = Collective::kBarrier, .rows = Rows(0), .row_count = 0}}, 1);
}

// The others come to their end, except who waits for the readers of its memory, and says so.
TEST_P(BackendContract, WaitsForNobodyWhoIsLate) {
  if (size() == 1) return;
  uint32_t seed = 700;
  for (uint32_t late = 0; late < size(); ++late) {
    for (int64_t rows : {7, 12'000}) {
      std::vector<Case> cases;
      for (Memory memory : {Memory::kPrivate, Memory::kRegistered}) {
        for (Collective collective :
             {Collective::kAllreduce, Collective::kAllgather, Collective::kBroadcast,
              Collective::kAlltoall, Collective::kReducescatter}) {
          cases.push_back(
              {.collective = collective, .rows = Rows(rows * size()), .memory = memory});
        }
      }
      Check(cases, ++seed, late);
    }
  }
}

// The distance of two neighbours around 0, as far as a test that adds thousands of them in float64
// can see.
double Smallest(DType dtype) { return dtype == DType::kFloat16 ? 0x1p-24 : 1e-11; }

TEST_P(BackendContract, AdasumIsItsDefinition) {
  if (kind() == Kind::kInproc) return;
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    for (size_t count : {1, 1000, 20'001}) {
      for (uint32_t zeros = 0; zeros < 2; ++zeros) {
        Case c{.op = ReduceOp::kAdasum,
               .dtype = dtype,
               .row_count = count,
               .memory = zeros == 0 ? Memory::kPrivate : Memory::kRegisteredInPlace};
        c.rows = Rows(1);
        c.prescale = 0.5;
        c.postscale = 4;
        std::vector<Operation> operations;
        operations.push_back(Make(c));
        std::vector<std::vector<double>> inputs(size(), std::vector<double>(count));
        for (uint32_t m = 0; m < size(); ++m) {
          auto* input =
              static_cast<std::byte*>(const_cast<void*>(operations[0].parts[m].call.input));
          for (size_t i = 0; i < count; ++i) {
            double value = zeros > m ? 0 : std::ldexp(std::round(normal(random) * 32), -5);
            if (dtype == DType::kFloat32 || dtype == DType::kFloat64) value *= 1.0 + 0x1p-15;
            Write(dtype, value, input + i * SizeOf(dtype));
            inputs[m][i] = value;
          }
        }
        members().Run(operations, 1000 + static_cast<uint32_t>(count));
        const std::vector<double> expected = AdasumOf(inputs);
        for (uint32_t m = 0; m < size(); ++m) {
          const Part& part = operations[0].parts[m];
          ASSERT_EQ(part.output, operations[0].parts[0].output) << "the same bits everywhere";
          for (size_t i = 0; i < count; ++i) {
            const double value = Read(dtype, part.output.data() + i * SizeOf(dtype));
            ASSERT_NEAR(value, 2 * expected[i],
                        std::fabs(expected[i]) * 2 * Precision(dtype) + Smallest(dtype))
                << NameOf(dtype) << " of " << count << ", member " << m << ", element " << i;
          }
        }
        Free();
      }
    }
  }
}

// Without shared memory the data goes through the requests, for some members or for all.
TEST_P(BackendContract, WorksWithoutSharedMemory) {
  if (kind() == Kind::kInproc) return;
  uint32_t seed = 800;
  for (uint32_t mask = 1; mask < (1u << size()); ++mask) {
    for (uint32_t m = 0; m < size(); ++m) members().member(m).door.closed = (mask >> m & 1) != 0;
    std::vector<Case> cases;
    for (Collective collective :
         {Collective::kAllreduce, Collective::kAllgather, Collective::kBroadcast,
          Collective::kAlltoall, Collective::kReducescatter}) {
      cases.push_back(
          {.collective = collective, .rows = Rows(4'000 * size()), .memory = Memory::kMade});
      cases.push_back(
          {.collective = collective, .rows = Rows(4'000 * size()), .memory = Memory::kInPlace});
    }
    for (Collective collective : {Collective::kAllgather, Collective::kBroadcast,
                                  Collective::kAlltoall, Collective::kReducescatter}) {
      cases.push_back(
          {.collective = collective, .rows = Rows(9'000 * size()), .waiting = Waiting::kAll});
    }
    cases.push_back({.op = ReduceOp::kAverage, .rows = Rows(9'000)});
    for (Waiting waiting : {Waiting::kAll, Waiting::kSome}) {
      cases.push_back({.rows = Rows(200'003), .waiting = waiting});
      cases.push_back({.rows = Rows(3'000), .waiting = waiting});
    }
    if (size() > 1) {
      cases.push_back({.op = ReduceOp::kAverage,
                       .rows = Rows(9'000),
                       .joined = std::vector<uint8_t>(size(), 0)});
      cases.back().joined[mask % size()] = 1;
    }
    Check(cases, ++seed);
  }
}

// Members that wait together in one allreduce of private memory, a ring: `value` of member m is
// m + 1 everywhere.
class RingOfMembers {
 public:
  // `ahead`: how often member 0 looks for the others before they come.
  RingOfMembers(uint32_t size, size_t count, int ahead = 0)
      : members_(Kind::kShm, size), parts_(size) {
    std::vector<BufferDescriptor> descriptors(size);
    for (uint32_t m = 0; m < size; ++m) {
      Part& part = parts_[m];
      part.input.assign(count, static_cast<float>(m + 1));
      part.output.assign(count, 0);
      part.call.collective = Collective::kAllreduce;
      part.call.dtype = DType::kFloat32;
      part.call.count = part.call.row_count = count;
      part.call.rows = 1;
      part.call.group = &members_.member(m).group;
      part.call.input = part.input.data();
      part.call.output = part.output.data();
      part.call.caller_waits = true;
      EXPECT_TRUE(backend(m).Prepare(part.call, &part.state, &descriptors[m]).ok());
      for (int look = 0; m == 0 && look < ahead; ++look) {
        backend(0).WorkAhead(part.call, part.state.get());
      }
    }
    for (uint32_t m = 0; m < size; ++m) {
      Part& part = parts_[m];
      EXPECT_FALSE(*backend(m).Start(part.call, part.state.get(), {descriptors, {}, {}}));
    }
  }

  // As often as `turns` says, or until it is done.
  bool Advance(uint32_t m, int turns = 1) {
    Part& part = parts_[m];
    for (int turn = 0; turn < turns && !part.done; ++turn) {
      part.done = *backend(m).Advance(part.call, part.state.get());
    }
    return part.done;
  }
  std::string Awaits(uint32_t m) {
    return backend(m).Awaits(parts_[m].call, parts_[m].state.get());
  }
  bool Needs(uint32_t m, uint32_t rank) {
    return backend(m).Needs(parts_[m].call, parts_[m].state.get(), rank);
  }
  void Abandon(uint32_t m) { backend(m).Abandon(std::move(parts_[m].state), true); }
  std::vector<float>& input(uint32_t m) { return parts_[m].input; }
  std::vector<float>& output(uint32_t m) { return parts_[m].output; }
  SharedHeap& heap(uint32_t m) { return members_.member(m).heap; }
  bool IsAll(uint32_t m, float value) const {
    return std::ranges::all_of(parts_[m].output, [value](float v) { return v == value; });
  }

 private:
  struct Part {
    CollectiveCall call;
    std::unique_ptr<OpState> state;
    std::vector<float> input, output;
    bool done = false;
  };
  Backend& backend(uint32_t m) { return *members_.member(m).backend; }

  ScheduledMembers members_;
  std::vector<Part> parts_;
};

constexpr size_t kFloatsOfChunk = StagingRing::kChunkBytes / sizeof(float);

TEST(ShmBackendContract, ARingIsForWhatACoreDoesNotKeep) {
  constexpr size_t kKib = 1024;
  EXPECT_EQ(StagingRing::From(0), 2048 * kKib) << "the cache is not known";
  EXPECT_EQ(StagingRing::From(512 * kKib), 512 * kKib);
  EXPECT_EQ(StagingRing::From(16384 * kKib), 2048 * kKib);
  EXPECT_EQ(StagingRing::From(32 * kKib), StagingRing::kWindowBytes);
}

// As on a core that two members share: each does all that it can before the other one comes. It
// does not stop where the slots are full, but goes on for as long as it may.
TEST(ShmBackendContract, ARingNeedsFewTurnsWithoutACoreForEach) {
  struct {
    size_t chunks;
    int turns;
  } const cases[] = {{20, 1}, {RingWords::kLead, 1}, {RingWords::kLead + 60, 2}};
  for (const auto& [chunks, turns] : cases) {
    RingOfMembers ring(2, chunks * kFloatsOfChunk - 3);
    bool done = false;
    for (int turn = 0; turn < turns; ++turn) {
      ASSERT_FALSE(done) << "fewer turns are enough";
      ring.Advance(0, 2000);
      ring.Advance(1, 2000);
      done = ring.Advance(0, 2000) && ring.Advance(1);
    }
    EXPECT_TRUE(done) << chunks << " chunks";
    EXPECT_TRUE(ring.IsAll(0, 3) && ring.IsAll(1, 3));
  }
}

// Chunks that a member put aside before the others came are theirs as soon as they come.
TEST(ShmBackendContract, ARingFindsWhatWasDoneBefore) {
  RingOfMembers ring(2, 30 * kFloatsOfChunk - 3, /*ahead=*/1000);
  EXPECT_TRUE(ring.Advance(1, 2000)) << "without member 0";
  EXPECT_TRUE(ring.Advance(0));
  EXPECT_TRUE(ring.IsAll(0, 3) && ring.IsAll(1, 3));
}

// Some members do more than others, in an order that a seed gives, and none waits for ever.
TEST(ShmBackendContract, ARingOfMembersThatRunInTurns) {
  for (uint32_t size : {2u, 3u, 5u}) {
    for (uint32_t seed = 1; seed <= 6; ++seed) {
      std::mt19937 random(seed);
      RingOfMembers ring(size, 40 * kFloatsOfChunk + seed);
      const auto sum = static_cast<float>(size * (size + 1) / 2);
      for (uint32_t done = 0, turn = 0; done != (1u << size) - 1; ++turn) {
        ASSERT_LT(turn, 10'000u);
        const uint32_t m = random() % size;
        const int turns = random() % 2 == 0 ? 1 : 300;
        if (ring.Advance(m, turns)) done |= 1u << m;
      }
      for (uint32_t m = 0; m < size; ++m) EXPECT_TRUE(ring.IsAll(m, sum)) << m << " of " << size;
    }
  }
}

// A ring that is left in every phase by member 0, because the world broke: nothing that the other
// still does reaches memory that member 0 gets afterwards.
TEST(ShmBackendContract, ARingThatIsLeftTouchesNothingLater) {
  const int aside = static_cast<int>(StagingRing::kPatience) + 3;  // member 0 is just at that
  for (int alone : {0, aside}) {
    for (int advances = 0; advances < 12; ++advances) {
      RingOfMembers ring(2, 1'000'003);
      bool done = false;
      for (int i = 0; i < advances; ++i) done = ring.Advance(static_cast<uint32_t>(i % 2));
      ring.Advance(0, alone);
      ASSERT_FALSE(done) << "the tensor is too small for this test";
      ring.Abandon(0);
      std::fill(ring.output(0).begin(), ring.output(0).end(), 7.0F);
      std::vector<std::pair<std::byte*, size_t>> later;
      for (size_t bytes = 64; bytes <= (8 << 20); bytes *= 2) {
        auto* memory = static_cast<std::byte*>(ring.heap(0).Allocate(bytes, /*zeroed=*/false));
        ASSERT_NE(memory, nullptr);
        std::memset(memory, 0x3c, bytes);
        later.emplace_back(memory, bytes);
      }
      ASSERT_FALSE(ring.Advance(1, 600)) << "member 0 is gone";
      EXPECT_TRUE(ring.Needs(1, /*rank=*/1));
      EXPECT_EQ(ring.Awaits(1), "for rank 1 to finish its part");
      ring.Abandon(1);
      for (auto [memory, bytes] : later) {
        EXPECT_TRUE(std::all_of(memory, memory + bytes,
                                [](std::byte byte) { return byte == std::byte{0x3c}; }));
      }
      EXPECT_TRUE(ring.IsAll(0, 7));
    }
  }
}

// The last member of a ring stops in the middle of a step, where `memory` of it begins: the others
// say so as soon as they have nothing else to do, and all come to their ends when it goes on.
// False: it had put aside and reduced so much before, as the others had no core, that one of them
// came to its end without it.
bool StopInARing(uint32_t size, bool at_output, size_t first) {
  constexpr size_t kCount = 40 * kFloatsOfChunk;
  SCOPED_TRACE(std::to_string(size) + " members, at " + (at_output ? "output " : "input ") +
               std::to_string(first));
  RingOfMembers ring(size, kCount);
  const uint32_t last = size - 1;
  uint32_t at_end = 0;  // a bit for each of the others
  const auto advance_others = [&] {
    for (uint32_t m = 0; m < last; ++m) {
      if ((at_end >> m & 1) == 0 && ring.Advance(m)) at_end |= 1u << m;
    }
  };
  bool waited = false;
  {
    float* data = (at_output ? ring.output(last) : ring.input(last)).data();
    StoppingMemory memory(data + first, 8192);
    std::atomic<bool> ended = false;
    std::thread member([&] {
      while (!ring.Advance(last)) std::this_thread::yield();
      ended = true;
    });
    std::atomic<bool> stopped = false;
    std::thread watch([&] {
      memory.AwaitStop();
      stopped = true;
    });
    for (int after = 0; after < 2000; after += stopped ? 1 : 0) advance_others();
    watch.join();
    waited = at_end == 0;
    for (uint32_t m = 0; m < last && waited; ++m) {
      EXPECT_EQ(ring.Awaits(m), "for rank " + std::to_string(2 * last + 1) + " to finish its part");
    }
    EXPECT_FALSE(ended);
    memory.LetGo();
    while (!ended || at_end != (1u << last) - 1) advance_others();
    member.join();
  }
  for (uint32_t m = 0; m < size; ++m) {
    EXPECT_TRUE(ring.IsAll(m, static_cast<float>(size * (size + 1) / 2))) << m;
  }
  return waited;
}

TEST(ShmBackendContract, NamesWhoStoppedInEachPhaseOfARing) {
  constexpr size_t kChunk = 20 * kFloatsOfChunk;
  const auto stop = [](uint32_t size, bool at_output, size_t first) {
    int tries = 20;
    while (!StopInARing(size, at_output, first) && --tries > 0) {
    }
    EXPECT_GT(tries, 0) << size << " members, at " << first << ": nobody ever waited";
  };
  stop(2, /*at_output=*/false, kChunk);                          // as it copies
  stop(2, /*at_output=*/true, kChunk);                           // as it combines
  stop(3, /*at_output=*/false, kChunk);                          // as it copies
  stop(3, /*at_output=*/true, kChunk + kFloatsOfChunk * 3 / 4);  // as it combines its slice
  stop(3, /*at_output=*/true, kChunk + kFloatsOfChunk / 8);      // as it takes another slice
}

// An allreduce of two members, one of which stops in the middle of a chunk: of the sum, or of what
// Adasum measures.
TEST(ShmBackendContract, NamesWhoStoppedInTheMiddleOfAChunk) {
  constexpr size_t kCount = 200'000;
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kAdasum}) {
    ScheduledMembers members(Kind::kShm, 2);
    CollectiveCall calls[2];
    std::unique_ptr<OpState> states[2];
    BufferDescriptor descriptors[2];
    for (uint32_t m = 0; m < 2; ++m) {
      CollectiveCall& call = calls[m];
      call.collective = Collective::kAllreduce;
      call.op = op;
      call.dtype = DType::kFloat32;
      call.count = call.row_count = kCount;
      call.rows = 1;
      call.group = &members.member(m).group;
      call.input = call.output = members.member(m).heap.Allocate(call.bytes(), /*zeroed=*/true);
      ASSERT_TRUE(members.member(m).backend->Prepare(call, &states[m], &descriptors[m]).ok());
    }
    auto backend = [&](uint32_t m) -> Backend& { return *members.member(m).backend; };
    auto advance = [&](uint32_t m) { return *backend(m).Advance(calls[m], states[m].get()); };
    auto awaits = [&](uint32_t m) { return backend(m).Awaits(calls[m], states[m].get()); };
    for (uint32_t m = 0; m < 2; ++m) {
      ASSERT_FALSE(*backend(m).Start(calls[m], states[m].get(), {descriptors, {}, {}}));
    }
    EXPECT_EQ(awaits(0), "") << "nobody has begun";
    {
      StoppingMemory memory(calls[1].output, calls[1].bytes());
      std::thread stopped([&] { advance(1); });
      memory.AwaitStop();
      EXPECT_FALSE(advance(0));
      EXPECT_EQ(awaits(0), "for rank 3 to finish its part");
      memory.LetGo();
      stopped.join();
    }
    while (!advance(0)) {
    }
    EXPECT_EQ(backend(1).Awaits(calls[1], states[1].get()), "");
  }
}

// An allreduce of two members, each with 50,000 floats of the value 1 in memory of its own choice.
class PairOfMembers {
 public:
  static constexpr size_t kCount = 50'000;  // more than travels in a request

  std::vector<float>& floats(uint32_t m) { return floats_[m]; }
  Member& member(uint32_t m) { return members_.member(m); }
  const BufferDescriptor& descriptor(uint32_t m) const { return descriptors_[m]; }
  size_t bytes() const { return calls_[0].bytes(); }

  void Prepare(uint32_t m, void* memory) {
    CollectiveCall& call = calls_[m];
    call.collective = Collective::kAllreduce;
    call.dtype = DType::kFloat32;
    call.count = call.row_count = floats_[m].size();
    call.rows = 1;
    call.group = &member(m).group;
    call.input = call.output = memory;
    std::fill_n(static_cast<float*>(memory), call.count, 1.0F);
    ASSERT_TRUE(member(m).backend->Prepare(call, &states_[m], &descriptors_[m]).ok());
  }
  bool Start(uint32_t m) {
    return *member(m).backend->Start(calls_[m], states_[m].get(), {descriptors_, {}, {}});
  }
  bool Advance(uint32_t m) { return *member(m).backend->Advance(calls_[m], states_[m].get()); }
  bool Needs(uint32_t m, uint32_t rank) {
    return member(m).backend->Needs(calls_[m], states_[m].get(), rank);
  }
  float first(uint32_t m) const { return *static_cast<const float*>(calls_[m].output); }

 private:
  ScheduledMembers members_{Kind::kShm, 2};
  std::vector<float> floats_[2] = {std::vector<float>(kCount), std::vector<float>(kCount)};
  CollectiveCall calls_[2];
  std::unique_ptr<OpState> states_[2];
  BufferDescriptor descriptors_[2];
};

TEST(ShmBackendContract, NeedsWhoStillReadsItsOutputWithoutSharedMemory) {
  PairOfMembers pair;
  void* output =
      pair.member(0).heap.Allocate(PairOfMembers::kCount * sizeof(float), /*zeroed=*/true);
  pair.Prepare(0, output);
  pair.member(1).door.closed = true;
  pair.Prepare(1, pair.floats(1).data());
  ASSERT_FALSE(pair.Start(0));
  EXPECT_FALSE(pair.Advance(0));
  EXPECT_TRUE(pair.Needs(0, /*rank=*/3));
  EXPECT_EQ(pair.first(0), 1) << "the other has not read it";
  EXPECT_TRUE(pair.Start(1));
  EXPECT_FALSE(pair.Needs(0, /*rank=*/3));
  EXPECT_TRUE(pair.Advance(0));
  EXPECT_EQ(pair.first(0), 2);
  EXPECT_EQ(pair.first(1), 2);
  EXPECT_TRUE(pair.member(0).heap.Free(output));
}

// Memory that waits for the slower of the two would be twice as much in a loop.
TEST(ShmBackendContract, ACopyOfTwoIsFreeOnceItsOwnerHasTheResult) {
  for (uint32_t first : {0, 1}) {
    PairOfMembers pair;
    for (uint32_t m : {0, 1}) pair.Prepare(m, pair.floats(m).data());
    for (uint32_t m : {0, 1}) ASSERT_FALSE(pair.Start(m));
    ASSERT_TRUE(pair.Advance(first));
    SharedHeap& heap = pair.member(first).heap;
    const Location copy = LeaseDescriptor::In(pair.descriptor(first)).data;
    void* next = heap.Allocate(pair.bytes(), /*zeroed=*/false);
    EXPECT_EQ(heap.Locate(next, pair.bytes())->offset, copy.offset) << "member " << first;
    EXPECT_TRUE(heap.Free(next));
    ASSERT_TRUE(pair.Advance(1 - first));
    for (uint32_t m : {0, 1}) EXPECT_EQ(pair.first(m), 2);
  }
}

// More elements than a 32-bit number can count, where they lie: reduced, then sent from one member
// to the other.
TEST(ShmBackendContract, CountsBeyond32Bits) {
  constexpr size_t kCount = (size_t{1} << 31) + 77, kStep = 4093;
  const char* soak = std::getenv("HVD_SOAK");
  if (soak == nullptr || *soak == '\0') GTEST_SKIP() << "takes 5 GiB: only with HVD_SOAK=1";
  const size_t available = AvailableMemory();
  if (available < (size_t{7} << 30)) {
    GTEST_SKIP() << "needs 5 GiB and a reserve of 2 GiB, and this host has " << (available >> 20)
                 << " MiB";
  }
  ScheduledMembers members(Kind::kShm, 2);
  std::byte* data[2];
  for (uint32_t m = 0; m < 2; ++m) {
    data[m] = static_cast<std::byte*>(members.member(m).heap.Allocate(kCount, /*zeroed=*/false));
    ASSERT_NE(data[m], nullptr);
  }
  auto set = [&](uint32_t m) {
    for (size_t i = 0; i < kCount; i += kStep) data[m][i] = static_cast<std::byte>(i / kStep + m);
    data[m][kCount - 1] = static_cast<std::byte>(40 + m);
  };
  auto call = [&](uint32_t m, Collective collective) {
    CollectiveCall made;
    made.collective = collective;
    made.dtype = DType::kUint8;
    made.root = 1;
    made.input = made.output = data[m];
    made.count = made.row_count = kCount;
    made.rows = 1;
    made.group = &members.member(m).group;
    return made;
  };
  auto run = [&](Collective collective) {
    std::unique_ptr<OpState> states[2];
    BufferDescriptor descriptors[2];
    for (uint32_t m = 0; m < 2; ++m) {
      Backend& backend = *members.member(m).backend;
      EXPECT_TRUE(backend.Prepare(call(m, collective), &states[m], &descriptors[m]).ok());
    }
    bool done[2];
    for (uint32_t m = 0; m < 2; ++m) {
      done[m] = *members.member(m).backend->Start(call(m, collective), states[m].get(),
                                                  {descriptors, {}, {}});
    }
    for (int turn = 0; turn < 4; ++turn) {
      const uint32_t m = turn % 2;
      if (!done[m]) {
        done[m] = *members.member(m).backend->Advance(call(m, collective), states[m].get());
      }
    }
    return done[0] && done[1];
  };
  set(0);
  set(1);
  ASSERT_TRUE(run(Collective::kAllreduce));
  for (uint32_t m = 0; m < 2; ++m) {
    EXPECT_EQ(data[m][kCount - 1], std::byte{81});
    for (size_t i = 0; i + 1 < kCount; i += kStep) {
      ASSERT_EQ(data[m][i], static_cast<std::byte>(2 * (i / kStep) + 1)) << i;
    }
  }
  set(1);
  ASSERT_TRUE(run(Collective::kBroadcast));
  EXPECT_EQ(data[0][kCount - 1], std::byte{41});
  for (size_t i = 0; i + 1 < kCount; i += kStep) {
    ASSERT_EQ(data[0][i], static_cast<std::byte>(i / kStep + 1)) << i;
  }
}

// Plans need no memory.
TEST(ShmBackendContract, PlansBeyond32Bits) {
  constexpr int64_t kRows = int64_t{3} << 31;
  Group group;
  group.ranks = group.local = group.local_to_group = {0, 1, 2};
  group.index = group.local_index = 2;
  CollectiveCall call;
  call.dtype = DType::kFloat64;
  call.group = &group;
  call.rows = kRows;
  call.row_count = 5;
  const std::vector<int64_t> splits = {kRows / 3, kRows / 3 + 1, 5};
  const Extent extents[] = {{kRows, splits}, {kRows + 1, splits}, {kRows, splits}};
  call.collective = Collective::kAllgather;
  GatherPlan plan = PlanGather(call, extents);
  EXPECT_EQ(plan.rows, 3 * kRows + 1);
  EXPECT_EQ(plan.pieces[2].target, static_cast<size_t>(2 * kRows + 1) * 40);
  EXPECT_EQ(plan.bytes, static_cast<size_t>(3 * kRows + 1) * 40);
  call.collective = Collective::kAlltoall;
  plan = PlanGather(call, extents);
  EXPECT_EQ(plan.pieces[1].source, static_cast<size_t>(2 * (kRows / 3) + 1) * 40);
  call.collective = Collective::kReducescatter;
  call.rows = kRows + 2;
  plan = PlanGather(call, {});
  EXPECT_EQ(plan.reduced.first, static_cast<size_t>(2 * (kRows / 3 + 1)) * 5);
  EXPECT_EQ(plan.reduced.count, static_cast<size_t>(kRows / 3) * 5);
}

// Every element in one chunk, whatever the size.
TEST(ShmBackendContract, CutsEveryElementOnce) {
  for (uint32_t lanes : {1u, 2u, 3u, 7u, 64u}) {
    for (size_t element : {1u, 2u, 4u, 8u}) {
      for (size_t count : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65'537},
                           size_t{10'000'019}, (size_t{5} << 31) + 3}) {
        for (size_t largest : {Chunking::kLargestChunk, SIZE_MAX / 2}) {
          const Chunking cut(count, element, lanes, largest);
          size_t next = 0;
          for (uint32_t lane = 0; lane < lanes; ++lane) {
            for (uint32_t chunk = 0; chunk < cut.chunks_of(lane); ++chunk) {
              const ElementRange range = cut.chunk(lane, chunk);
              ASSERT_EQ(range.first, next);
              ASSERT_GT(range.count, 0u);
              next += range.count;
            }
            ASSERT_LE(cut.chunks_of(lane), cut.chunks_of(0));
            if (largest != Chunking::kLargestChunk) {
              ASSERT_LE(cut.chunks_of(lane), Chunking::kChunksPerSlice);
            }
          }
          ASSERT_EQ(next, count) << lanes << " lanes, elements of " << element;
        }
      }
    }
  }
}

std::string NameOfTested(const ::testing::TestParamInfo<std::tuple<Kind, uint32_t>>& tested) {
  const auto [kind, size] = tested.param;
  const char* name = kind == Kind::kShm ? "Shm" : kind == Kind::kInproc ? "Inproc" : "Hosts";
  return name + std::to_string(size);
}

INSTANTIATE_TEST_SUITE_P(, BackendContract,
                         ::testing::Combine(::testing::Values(Kind::kShm, Kind::kInproc),
                                            ::testing::Values(1u, 2u, 3u, 5u)),
                         NameOfTested);
// HostsBackend passes groups on one host to shared memory, which is tested with all sizes above.
INSTANTIATE_TEST_SUITE_P(OverHosts, BackendContract,
                         ::testing::Combine(::testing::Values(Kind::kHosts),
                                            ::testing::Values(2u, 3u)),
                         NameOfTested);

}  // namespace
}  // namespace hvd::test
