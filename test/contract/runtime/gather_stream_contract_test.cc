// Allgather, alltoall, broadcast and reducescatter of members that wait: their inputs go as
// streams. These tests have threads, or members that stop or leave in the middle;
// backend_contract_test.cc has the results of every kind of call.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/shm/gather_stream.h"
#include "test/fakes/scheduled_members.h"
#include "test/fakes/stopping_memory.h"

namespace hvd::test {
namespace {

constexpr Collective kAllStreams[] = {Collective::kAllgather, Collective::kAlltoall,
                                      Collective::kBroadcast, Collective::kReducescatter};
constexpr size_t kIntsOfChunk = StreamCut::kChunkBytes / sizeof(int32_t);

// The element that member `from` has at position i of its input.
int32_t SentAt(uint32_t from, size_t i) { return static_cast<int32_t>(from * 1'000'003 + i * 7); }

// One call of one member, with one element a row.
struct StreamPart {
  CollectiveCall call;
  CollectiveResult result;
  std::unique_ptr<OpState> state;
  std::vector<int64_t> splits;
  std::vector<int32_t> input, output;
  Bytes payload;
  bool done = false;
};

// Members in one operation. `rows[m]` is what m brings; of an alltoall it gives splits[m][k] to k.
class StreamingMembers {
 public:
  explicit StreamingMembers(uint32_t size) : members_(Kind::kShm, size) {}

  uint32_t size() const { return members_.size(); }
  Backend& backend(uint32_t m) { return *members_.member(m).backend; }
  SharedHeap& heap(uint32_t m) { return members_.member(m).heap; }
  StreamPart& part(uint32_t m) { return parts_[m]; }

  void Plan(Collective collective, std::vector<int64_t> rows,
            std::vector<std::vector<int64_t>> splits = {}, uint32_t idle = UINT32_MAX) {
    parts_.clear();
    parts_.resize(size());
    descriptors_.assign(size(), {});
    for (uint32_t m = 0; m < size(); ++m) {
      StreamPart& part = parts_[m];
      part.splits = splits.empty() ? std::vector<int64_t>(size(), rows[m] / size()) : splits[m];
      CollectiveCall& call = part.call;
      call.collective = collective;
      call.dtype = DType::kInt32;
      call.rows = rows[m];
      call.count = static_cast<size_t>(rows[m]);
      call.row_count = 1;
      call.root = 0;
      call.group = &members_.member(m).group;
      call.result = &part.result;
      if (collective == Collective::kAlltoall) call.splits = part.splits.data();
      call.caller_waits = m != idle;
      part.input.resize(call.count);
      for (size_t i = 0; i < call.count; ++i) part.input[i] = SentAt(m, i);
    }
    for (uint32_t m = 0; m < size(); ++m) {
      StreamPart& part = parts_[m];
      part.output.assign(Expected(m).size() + 1, 0);
      part.call.input = part.input.data();
      part.call.output = part.output.data();
    }
  }

  std::vector<int32_t> Expected(uint32_t self) const {
    std::vector<int32_t> expected;
    const CollectiveCall& own = parts_[self].call;
    const auto append = [&](uint32_t m, size_t first, size_t rows) {
      for (size_t i = 0; i < rows; ++i) expected.push_back(SentAt(m, first + i));
    };
    if (own.collective == Collective::kBroadcast) append(0, 0, own.count);
    const RowRange scattered = RowsOf(self, own.rows, size());
    if (own.collective == Collective::kReducescatter) {
      for (int64_t i = scattered.first; i < scattered.first + scattered.count; ++i) {
        int32_t sum = 0;
        for (uint32_t m = 0; m < size(); ++m) sum += SentAt(m, static_cast<size_t>(i));
        expected.push_back(sum);
      }
    }
    for (uint32_t m = 0; m < size(); ++m) {
      const std::vector<int64_t>& splits = parts_[m].splits;
      if (own.collective == Collective::kAllgather) append(m, 0, parts_[m].call.count);
      if (own.collective == Collective::kAlltoall)
        append(
            m,
            static_cast<size_t>(std::accumulate(splits.begin(), splits.begin() + self, int64_t{0})),
            static_cast<size_t>(splits[self]));
    }
    return expected;
  }

  void Prepare(uint32_t m) {
    StreamPart& part = parts_[m];
    EXPECT_TRUE(backend(m).Prepare(part.call, &part.state, &descriptors_[m]).ok());
    const std::span<const std::byte> payload = descriptors_[m].payload;
    part.payload.assign(payload.begin(), payload.end());  // as when it is announced
    if (!payload.empty()) descriptors_[m].payload = part.payload;
  }
  void Start(uint32_t m) {
    std::vector<Extent> extents;
    const Collective collective = parts_[m].call.collective;
    if (collective == Collective::kAllgather || collective == Collective::kAlltoall) {
      for (const StreamPart& part : parts_) extents.push_back({part.call.rows, part.splits});
    }
    parts_[m].done =
        *backend(m).Start(parts_[m].call, parts_[m].state.get(), {descriptors_, extents, {}});
  }
  void Begin() {
    for (uint32_t m = 0; m < size(); ++m) Prepare(m);
    for (uint32_t m = 0; m < size(); ++m) Start(m);
  }
  bool Advance(uint32_t m, int turns = 1) {
    StreamPart& part = parts_[m];
    for (int turn = 0; turn < turns && !part.done; ++turn) {
      part.done = *backend(m).Advance(part.call, part.state.get());
    }
    return part.done;
  }
  std::string Awaits(uint32_t m) {
    return backend(m).Awaits(parts_[m].call, parts_[m].state.get());
  }
  // Then the input is used for something else.
  void Check(uint32_t m) {
    StreamPart& part = parts_[m];
    ASSERT_TRUE(part.done);
    part.state.reset();
    std::ranges::fill(part.input, -5);
    part.output.pop_back();
    ASSERT_TRUE(part.output == expected_[m]) << "member " << m;
  }
  void Expect() {
    expected_.clear();
    for (uint32_t m = 0; m < size(); ++m) expected_.push_back(Expected(m));
  }

 private:
  ScheduledMembers members_;
  std::vector<StreamPart> parts_;
  std::vector<BufferDescriptor> descriptors_;
  std::vector<std::vector<int32_t>> expected_;
};

// Of round `round`: rows that differ, some of them none.
void PlanRound(StreamingMembers& members, Collective collective, uint32_t round) {
  std::mt19937 random(round);
  const uint32_t size = members.size();
  const auto draw = [&] {
    const int64_t most[] = {0, 3'000, 40'000, 150'000};
    const int64_t rows = most[random() % 4];
    return rows == 0 ? 0 : static_cast<int64_t>(random() % rows);
  };
  std::vector<int64_t> rows(size, 5'000 + draw());
  std::vector<std::vector<int64_t>> splits;
  if (collective == Collective::kAllgather) std::ranges::generate(rows, draw);
  if (collective == Collective::kAlltoall) {
    for (uint32_t m = 0; m < size; ++m) {
      std::ranges::generate(splits.emplace_back(size), draw);
      rows[m] = std::accumulate(splits[m].begin(), splits[m].end(), int64_t{0});
    }
  }
  members.Plan(collective, rows, splits, /*idle=*/round % 3 == 0 ? round % size : UINT32_MAX);
  members.Expect();
}

TEST(GatherStreamContract, MembersOnThreadsOfTheirOwn) {
  for (uint32_t size : {2u, 3u, 4u}) {
    StreamingMembers members(size);
    for (uint32_t round = 0; round < 16; ++round) {
      PlanRound(members, kAllStreams[round % 4], round);
      std::barrier prepared(size);
      std::vector<std::thread> threads;
      for (uint32_t m = 0; m < size; ++m) {
        threads.emplace_back([&, m] {
          members.Prepare(m);
          prepared.arrive_and_wait();
          members.Start(m);
          while (!members.Advance(m)) std::this_thread::yield();
          members.Check(m);
        });
      }
      for (std::thread& thread : threads) thread.join();
      ASSERT_FALSE(HasFailure()) << size << " members, round " << round;
    }
  }
}

// Some members do more than others, in an order that a seed gives; none waits for ever.
TEST(GatherStreamContract, MembersThatRunInTurns) {
  for (uint32_t size : {2u, 3u, 5u}) {
    StreamingMembers members(size);
    for (uint32_t round = 0; round < 12; ++round) {
      PlanRound(members, kAllStreams[round % 4], round);
      members.Begin();
      std::mt19937 random(round);
      for (uint32_t done = 0, turn = 0; done != (1u << size) - 1; ++turn) {
        ASSERT_LT(turn, 10'000u);
        const uint32_t m = random() % size;
        if (members.Advance(m, random() % 2 == 0 ? 1 : 300)) done |= 1u << m;
      }
      for (uint32_t m = 0; m < size; ++m) members.Check(m);
      ASSERT_FALSE(HasFailure()) << size << " members, round " << round;
    }
  }
}

TEST(GatherStreamContract, AnOwnerEndsWithoutItsReaders) {
  StreamingMembers members(3);
  members.Plan(Collective::kBroadcast, std::vector<int64_t>(3, 20 * kIntsOfChunk + 5));
  members.Expect();
  for (uint32_t m = 0; m < 3; ++m) members.Prepare(m);
  members.Start(0);
  ASSERT_TRUE(members.Advance(0, 2000));
  std::ranges::fill(members.part(0).input, -5);
  members.part(0).state.reset();
  for (uint32_t m : {2u, 1u}) {
    members.Start(m);
    ASSERT_TRUE(members.Advance(m, 3)) << "all that it needs is there";
    members.Check(m);
  }
}

// Before the others come, too.
TEST(GatherStreamContract, AnOwnerWorksAhead) {
  StreamingMembers members(2);
  members.Plan(Collective::kBroadcast, std::vector<int64_t>(2, 20 * kIntsOfChunk));
  members.Expect();
  members.Prepare(0);
  StreamPart& root = members.part(0);
  for (int look = 0; look < 1000; ++look) members.backend(0).WorkAhead(root.call, root.state.get());
  members.Prepare(1);
  members.Start(1);
  EXPECT_TRUE(members.Advance(1)) << "without member 0";
  members.Check(1);
  members.Start(0);
  EXPECT_TRUE(members.Advance(0));
}

// The copy is for readers that stay away only.
TEST(GatherStreamContract, GoesAsideForReadersThatStayAwayOnly) {
  constexpr uint32_t kReaders = 2;
  Group group;
  group.ranks = group.local = group.local_to_group = {0, 1, 2};
  CollectiveCall call;
  call.collective = Collective::kBroadcast;
  call.dtype = DType::kInt32;
  call.group = &group;
  call.rows = call.count = 20 * kIntsOfChunk + 3;
  call.row_count = 1;
  std::vector<int32_t> input(call.count, 9);
  for (const bool away : {false, true}) {
    struct alignas(kCacheLine) Line {
      std::byte bytes[kCacheLine];
    };
    std::vector<Line> control(StreamPlace::BytesFor(3) / kCacheLine);
    std::vector<std::byte> copy(call.bytes());
    const StreamPlace place(control[0].bytes, 3, copy.data());
    const StreamCut cut(call, 0, {});
    StreamSource source(cut, place, input.data(), 3, 0);
    std::vector<StreamReader> readers;
    for (uint32_t r = 1; r <= kReaders; ++r) readers.emplace_back(cut, place, r);
    for (int turn = 0; turn < 3000; ++turn) {
      if (!source.Post()) source.PostAside();
      for (StreamReader& reader : readers) {
        if (away && &reader == &readers[1] && !source.done()) continue;
        if (reader.ready()) reader.Pop();
      }
    }
    EXPECT_TRUE(source.done() && readers[0].done() && readers[1].done());
    EXPECT_EQ(source.went_aside(), away);
  }
}

// A stream that is left in every phase by member 0, because the world broke: nothing that the other
// still does reaches memory that member 0 gets afterwards.
TEST(GatherStreamContract, WhoIsLeftTouchesNothingLater) {
  for (Collective collective : kAllStreams) {
    for (int advances : {0, 1, 2, 5}) {
      StreamingMembers members(2);
      members.Plan(collective, std::vector<int64_t>(2, 400'000));
      members.Begin();
      bool done = false;
      for (int i = 0; i < advances; ++i) done = members.Advance(static_cast<uint32_t>(i % 2));
      if (done) continue;  // a broadcast's reader
      members.backend(0).Abandon(std::move(members.part(0).state), true);
      std::ranges::fill(members.part(0).output, 7);
      std::vector<std::pair<std::byte*, size_t>> later;
      for (size_t bytes = 64; bytes <= (1 << 20); bytes *= 2) {
        auto* memory = static_cast<std::byte*>(members.heap(0).Allocate(bytes, /*zeroed=*/false));
        ASSERT_NE(memory, nullptr);
        std::memset(memory, 0x3c, bytes);
        later.emplace_back(memory, bytes);
      }
      members.Advance(1, 600);
      if (members.part(1).state != nullptr)
        members.backend(1).Abandon(std::move(members.part(1).state), true);
      for (auto [memory, bytes] : later) {
        EXPECT_TRUE(std::all_of(memory, memory + bytes,
                                [](std::byte byte) { return byte == std::byte{0x3c}; }));
      }
      EXPECT_TRUE(std::ranges::all_of(members.part(0).output, [](int32_t v) { return v == 7; }));
    }
  }
}

// The last member stops in the middle of a step, at this byte of its input or output: the others
// say so as soon as they have nothing else to do, and all come to their ends when it goes on.
// False: it was so far ahead that it had given all before it stopped, and the others need nothing.
bool StopInAStream(Collective collective, bool at_output, size_t at) {
  SCOPED_TRACE(std::to_string(static_cast<int>(collective)) + (at_output ? ", output" : ", input"));
  constexpr uint32_t kSize = 3, kLast = kSize - 1;
  StreamingMembers members(kSize);
  members.Plan(collective, std::vector<int64_t>(kSize, 30 * kIntsOfChunk));
  members.Expect();
  members.Begin();
  bool named = false;
  {
    StreamPart& part = members.part(kLast);
    StoppingMemory memory(
        reinterpret_cast<std::byte*>((at_output ? part.output : part.input).data()) + at, 8192);
    std::atomic<bool> ended = false, stopped = false;
    std::thread member([&] {
      while (!members.Advance(kLast)) std::this_thread::yield();
      ended = true;
    });
    std::thread watch([&] {
      memory.AwaitStop();
      stopped = true;
    });
    bool early = false;
    for (int after = 0; after < 500; after += stopped ? 1 : 0) {
      for (uint32_t m = 0; m < kLast; ++m) early = members.Advance(m) || early;
    }
    watch.join();
    named = !early;
    for (uint32_t m = 0; m < kLast && named; ++m)
      EXPECT_EQ(members.Awaits(m),
                "for rank " + std::to_string(2 * kLast + 1) + " to finish its part");
    EXPECT_FALSE(ended);
    memory.LetGo();
    for (bool all = false; !all;) {
      all = ended;
      for (uint32_t m = 0; m < kLast; ++m) all = members.Advance(m) && all;
    }
    member.join();
  }
  for (uint32_t m = 0; m < kSize; ++m) members.Check(m);
  return named;
}

// The last member is seldom ahead, unless the machine is busy.
bool StopsInAStream(Collective collective, bool at_output, size_t at) {
  for (int tries = 0; tries < 20; ++tries) {
    if (StopInAStream(collective, at_output, at)) return true;
  }
  return false;
}

TEST(GatherStreamContract, NamesWhoStoppedInEachPhase) {
  constexpr size_t kMiddle = 5 * StreamCut::kChunkBytes;  // of a part, of three in an alltoall
  EXPECT_TRUE(StopsInAStream(Collective::kAllgather, /*at_output=*/true, kMiddle));  // of another's
  EXPECT_TRUE(StopsInAStream(Collective::kAlltoall, /*at_output=*/false, kMiddle));
  EXPECT_TRUE(StopsInAStream(Collective::kAlltoall, /*at_output=*/true, kMiddle));
  EXPECT_TRUE(StopsInAStream(Collective::kReducescatter, /*at_output=*/true, kMiddle));
}

}  // namespace
}  // namespace hvd::test
