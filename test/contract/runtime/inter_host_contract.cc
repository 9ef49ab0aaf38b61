#include "test/contract/runtime/inter_host_contract.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "test/contract/runtime/counted_copies.h"
#include "test/contract/runtime/inter_host_values.h"

namespace hvd::test {
namespace {

const ReduceSpec kFloatSum{DType::kFloat32, Arithmetic::kSum};

std::vector<size_t> Scaled(uint32_t size, size_t unit) {
  std::vector<size_t> parts;
  for (uint32_t i = 0; i < size; ++i) parts.push_back(unit * ((i + 1) % 3));  // the third has none
  return parts;
}

size_t Before(const std::vector<size_t>& parts, uint32_t index) {
  return std::accumulate(parts.begin(), parts.begin() + index, size_t{0});
}

void ExpectAllreduce(const Leader& me, InterHostCall call, const ReduceSpec& spec, size_t count) {
  SCOPED_TRACE(testing::Message() << me.size() << " leaders, leader " << me.index << ", "
                                  << NameOf(spec.dtype) << " x " << count << ", arithmetic "
                                  << static_cast<int>(spec.arithmetic));
  const Bytes expected = CombinedValues(me.size(), spec, count);
  const Bytes input = Values(spec.dtype, count, me.index);
  Bytes kept = input, output(input.size()), in_place = input;
  ExpectOk(me.comm.Allreduce(call, spec, kept.data(), output.data(), count));
  EXPECT_TRUE(output == expected);
  EXPECT_TRUE(kept == input);
  ExpectOk(me.comm.Allreduce(call, spec, in_place.data(), in_place.data(), count));
  EXPECT_TRUE(in_place == expected);
}

// ---- collectives

TEST_P(InterHostContract, AllreduceOfEveryTypeSizeAndArithmetic) {
  InWorlds(1, [](const Leader& me) {
    for (DType dtype : AllTypes()) {
      for (size_t count : {0, 1, 2, 7, 1001, 20'001}) {
        for (Arithmetic how :
             {Arithmetic::kSum, Arithmetic::kMin, Arithmetic::kMax, Arithmetic::kProduct}) {
          ExpectAllreduce(me, me.Call(), {dtype, how}, count);
        }
      }
    }
  });
}

// With each access checked, the largest would take half a minute.
#if defined(__SANITIZE_ADDRESS__)
const std::vector<size_t> kLargeCounts = {65'537, 300'001};
constexpr size_t kLargestCount = 600'001;
#else
const std::vector<size_t> kLargeCounts = {65'537, 300'001, 600'001};
constexpr size_t kLargestCount = 2'250'001;
#endif

TEST_P(InterHostContract, LargeSumsAreAddedInTheOrderOfTheLeadersAndRoundedOnce) {
  InWorlds(1, [](const Leader& me) {
    for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBfloat16, DType::kUint8}) {
      for (size_t count : kLargeCounts) {
        ExpectAllreduce(me, me.Call(), {dtype, Arithmetic::kSum}, count);
      }
    }
    ExpectAllreduce(me, me.Call(), kFloatSum, kLargestCount);
  });
}

TEST_P(InterHostContract, AllreduceScalesWhatComesInAndWhatGoesOut) {
  InWorlds(1, [](const Leader& me) {
    for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt32}) {
      const ReduceSpec spec{dtype, Arithmetic::kSum, 2.0, 0.5, static_cast<double>(me.size())};
      for (size_t count : {7, 300'000}) ExpectAllreduce(me, me.Call(), spec, count);
    }
  });
}

TEST_P(InterHostContract, NoBitDependsOnHowALargeSumIsCut) {
  InWorlds(2, [](const Leader& me) {
    uint64_t tag = 0;
    // Pieces of 1 KiB: more than 64 of them, and the last is not a whole one.
    for (const SumCut& cut :
         {SumCut{}, SumCut{.piece_kib = 1, .pieces = 64}, SumCut{.piece_kib = 64, .pieces = 1},
          SumCut{.piece_kib = 64, .pieces = 5}, SumCut{.piece_kib = 300, .pieces = 64},
          SumCut{.piece_kib = 1 << 20, .pieces = 64},
          SumCut{.piece_kib = 512, .pieces = 3, .stripes = 3}, SumCut{.stripes = 16}}) {
      SCOPED_TRACE(testing::Message()
                   << "pieces of " << cut.piece_kib << " KiB, stripes " << cut.stripes);
      InterHostCall call = me.Call(++tag);
      call.cut = cut;
      ExpectAllreduce(me, call, kFloatSum, 300'007);
    }
  });
}

// The last leader comes late to every sum, so what the others send waits for it.
TEST_P(InterHostContract, EagerSumsWaitForALeaderThatComesLate) {
  InWorlds(2, [](const Leader& me) {
    for (size_t count : {1000, 30'000, 65'536, 65'537, 300'000}) {
      if (me.index + 1 == me.size()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      InterHostCall call = me.Call();
      call.cut.eager_kib = 256;
      ExpectAllreduce(me, call, kFloatSum, count);
    }
  });
}

// By those that can (CopiesByPart).
TEST_P(InterHostContract, EachPartIsCopiedInOnceBeforeItIsReadAndOutOnceWhenItIsDone) {
  InWorlds(1, [](const Leader& me) {
    if (!me.comm.CopiesByPart()) return;
    for (size_t count : {5, 300'007}) {
      const Bytes expected = CombinedValues(me.size(), kFloatSum, count);
      for (const SumCut& cut : {SumCut{}, SumCut{.piece_kib = 64, .pieces = 3, .stripes = 2}}) {
        ExpectSumByCopies(me.Call(), cut, Values(DType::kFloat32, count, me.index), expected,
                          [&](const InterHostCall& call, std::byte* place) {
                            return me.comm.Allreduce(call, kFloatSum, place, place, count);
                          });
      }
    }
  });
}

TEST_P(InterHostContract, AGroupMayBeAnyLeadersInAnyOrder) {
  InWorlds(2, [](const Leader& me) {
    constexpr size_t kCount = 100'003;
    std::vector<uint32_t> backwards(me.ranks.rbegin(), me.ranks.rend());
    const Leader mirrored{me.comm, backwards, me.size() - 1 - me.index};
    ExpectAllreduce(mirrored, mirrored.Call(), kFloatSum, kCount);
    std::vector<uint32_t> even;
    for (uint32_t i = 0; i < me.size(); i += 2) even.push_back(me.ranks[i]);
    if (me.index % 2 != 0) return;
    const Leader half{me.comm, even, me.index / 2};
    ExpectAllreduce(half, half.Call(2), kFloatSum, kCount);
  });
}

TEST_P(InterHostContract, BroadcastFromEveryRoot) {
  InWorlds(1, [](const Leader& me) {
    for (size_t bytes : {0, 1, 3, 70'001, 262'111, 262'112, 262'113, 2'000'003}) {
      for (uint32_t root = 0; root < me.size(); ++root) {
        SCOPED_TRACE(testing::Message() << bytes << " bytes from " << root << " to " << me.index);
        const Bytes expected = Noise(bytes, root);
        Bytes data = me.index == root ? expected : Bytes(bytes);
        ExpectOk(me.comm.Broadcast(me.Call(), root, data.data(), bytes));
        EXPECT_TRUE(data == expected);
      }
    }
  });
}

TEST_P(InterHostContract, AllgathervOfUnequalParts) {
  InWorlds(1, [](const Leader& me) {
    for (size_t unit : {0, 1, 40'003, 600'000}) {
      const std::vector<size_t> bytes = Scaled(me.size(), unit);
      Bytes expected;
      for (uint32_t i = 0; i < me.size(); ++i) {
        const Bytes part = Noise(bytes[i], i);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      const Bytes part = Noise(bytes[me.index], me.index);
      Bytes output(expected.size()), in_place(expected.size());
      ExpectOk(me.comm.Allgatherv(me.Call(), part.data(), bytes, output.data()));
      EXPECT_TRUE(output == expected) << unit;
      std::byte* own = in_place.data() + Before(bytes, me.index);
      std::copy(part.begin(), part.end(), own);
      ExpectOk(me.comm.Allgatherv(me.Call(), own, bytes, in_place.data()));
      EXPECT_TRUE(in_place == expected) << unit;
    }
  });
}

TEST_P(InterHostContract, AlltoallvOfUnequalPieces) {
  InWorlds(1, [](const Leader& me) {
    for (size_t unit : {0, 1, 50'000, 400'000}) {
      const auto bytes = [&](uint32_t from, uint32_t to) { return unit * ((from * 3 + to) % 4); };
      std::vector<size_t> sent, received;
      Bytes input, expected;
      for (uint32_t k = 0; k < me.size(); ++k) {
        sent.push_back(bytes(me.index, k));
        received.push_back(bytes(k, me.index));
        const Bytes to = Noise(sent.back(), me.index * 100 + k);
        const Bytes from = Noise(received.back(), k * 100 + me.index);
        input.insert(input.end(), to.begin(), to.end());
        expected.insert(expected.end(), from.begin(), from.end());
      }
      Bytes output(expected.size());
      ExpectOk(me.comm.Alltoallv(me.Call(), input.data(), sent, output.data(), received));
      EXPECT_TRUE(output == expected) << unit;
    }
  });
}

TEST_P(InterHostContract, ReducescattervGivesEachItsPart) {
  InWorlds(1, [](const Leader& me) {
    for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt64}) {
      for (size_t unit : {0, 1, 90'001}) {
        const ReduceSpec spec{dtype, Arithmetic::kSum};
        const std::vector<size_t> counts = Scaled(me.size(), unit);
        const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
        const size_t before = Before(counts, me.index) * SizeOf(dtype);
        const size_t own = counts[me.index] * SizeOf(dtype);
        const Bytes whole = CombinedValues(me.size(), spec, total);
        const Bytes expected(whole.begin() + static_cast<ptrdiff_t>(before),
                             whole.begin() + static_cast<ptrdiff_t>(before + own));
        const Bytes input = Values(dtype, total, me.index);
        Bytes kept = input, output(own);
        ExpectOk(me.comm.Reducescatterv(me.Call(), spec, kept.data(), counts, output.data()));
        EXPECT_TRUE(output == expected) << NameOf(dtype) << " x " << unit;
        EXPECT_TRUE(kept == input);
        // Into its own part of the input; the rest of the input stays.
        ExpectOk(
            me.comm.Reducescatterv(me.Call(), spec, kept.data(), counts, kept.data() + before));
        Bytes mixed = input;
        std::copy(expected.begin(), expected.end(), mixed.begin() + static_cast<ptrdiff_t>(before));
        EXPECT_TRUE(kept == mixed) << NameOf(dtype) << " x " << unit;
      }
    }
  });
}

// All of them in one thread, and in another all even or all odd ones.
TEST_P(InterHostContract, GroupsAndTagsDoNotMix) {
  InWorlds(2, [](const Leader& me) {
    std::vector<uint32_t> half;
    for (uint32_t i = me.index % 2; i < me.size(); i += 2) half.push_back(me.ranks[i]);
    const ReduceSpec spec{DType::kInt64, Arithmetic::kSum};
    std::thread other([&] {
      const Leader of_half{me.comm, half, me.index / 2};
      int64_t sum = 0;
      for (uint32_t i = me.index % 2; i < me.size(); i += 2) sum += i;
      for (int round = 0; round < 20; ++round) {
        int64_t value = me.index;
        ExpectOk(me.comm.Allreduce(of_half.Call(77), spec, &value, &value, 1));
        EXPECT_EQ(value, sum);
      }
    });
    for (int round = 0; round < 20; ++round) {
      int64_t value = me.index;
      ExpectOk(me.comm.Allreduce(me.Call(78), spec, &value, &value, 1));
      EXPECT_EQ(value, int64_t{me.size()} * (me.size() - 1) / 2);
    }
    other.join();
  });
}

// ---- small messages

TEST_P(InterHostContract, SmallMessagesArriveInOrderPerSenderAndTag) {
  InWorlds(2, [](const Leader& me) {
    const auto text = [](uint32_t rank, uint64_t tag, int n) {
      return std::to_string(rank) + " says " + std::to_string(n) + " on " + std::to_string(tag);
    };
    for (int n = 0; n < 50; ++n) {
      for (uint64_t tag : {105, 106}) {
        ExpectOk(me.comm.Send(me.next(), tag, AsBytes(text(me.rank(), tag, n)), Soon()));
      }
    }
    for (uint64_t tag : {106, 105}) {
      for (int n = 0; n < 50; ++n) {
        Result<InterHostMessage> message = me.comm.Receive(me.previous(), tag, Soon());
        ASSERT_TRUE(message.ok()) << message.status().message();
        EXPECT_EQ(message->bytes, text(me.previous(), tag, n));
        EXPECT_EQ(message->from, me.previous());
      }
    }
  });
}

TEST_P(InterHostContract, EmptyAndLongestMessagesCrossEachOther) {
  InWorlds(2, [](const Leader& me) {
    const auto longest = [](uint32_t i) {
      return std::string(kMaxInterHostMessage, static_cast<char>('a' + i));
    };
    for (uint32_t rank : me.ranks) {
      if (rank == me.rank()) continue;
      ExpectOk(me.comm.Send(rank, 107, {}, Soon()));
      ExpectOk(me.comm.Send(rank, 107, AsBytes(longest(me.index)), Soon()));
    }
    for (uint32_t i = 0; i < me.size(); ++i) {
      if (i == me.index) continue;
      for (const std::string& expected : {std::string(), longest(i)}) {
        Result<InterHostMessage> message = me.comm.Receive(me.ranks[i], 107, Soon());
        ASSERT_TRUE(message.ok()) << message.status().message();
        EXPECT_TRUE(message->bytes == expected);
      }
    }
    EXPECT_EQ(me.comm.Send(me.next(), 107, AsBytes(longest(0) + "x"), Soon()).code(),
              Code::kInvalidArgument);
  });
}

TEST_P(InterHostContract, ReceiveFromAnybodyHearsEverybody) {
  InWorlds(2, [](const Leader& me) {
    if (me.index > 0) return ExpectOk(me.comm.Send(me.ranks[0], 109, AsBytes("hello"), Soon()));
    std::vector<uint32_t> heard{me.rank()};
    while (heard.size() < me.size()) {
      Result<InterHostMessage> message = me.comm.Receive(kAnyLeader, 109, Soon());
      ASSERT_TRUE(message.ok()) << message.status().message();
      EXPECT_EQ(message->bytes, "hello");
      heard.push_back(message->from);
    }
    std::sort(heard.begin(), heard.end());
    EXPECT_EQ(heard, me.ranks);
  });
}

TEST_P(InterHostContract, ReceiveEndsAtItsDeadline) {
  InWorlds(2, [](const Leader& me) {
    for (uint32_t from : {me.next(), kAnyLeader}) {
      for (TimePoint deadline : {TimePoint{}, SteadyNow() + std::chrono::milliseconds(5)}) {
        EXPECT_EQ(me.comm.Receive(from, 110, deadline).status().code(), Code::kInProgress);
      }
    }
  });
}

TEST_P(InterHostContract, WakeEndsAReceiveNowOrTheNextOne) {
  InWorlds(2, [](const Leader& me) {
    const auto ended = [&] { return me.comm.Receive(kAnyLeader, 111, Soon()).status().code(); };
    me.comm.Wake();
    EXPECT_EQ(ended(), Code::kInProgress);
    std::thread waker([&] { me.comm.Wake(); });
    EXPECT_EQ(ended(), Code::kInProgress);
    waker.join();
  });
}

}  // namespace
}  // namespace hvd::test
