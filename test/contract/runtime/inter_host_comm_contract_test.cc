// The promises of every InterHostComm (inter_host_comm.h), asked of the model and of Gloo over a
// mesh on loopback. The leaders are threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/backends/inter_host_comm.h"
#include "test/fakes/inproc/inproc_inter_host_comm.h"
#include "test/fakes/memory_kv_store.h"
#ifdef HVD_HAVE_GLOO
#include "runtime/backends/gloo/gloo_inter_host_comm.h"
#include "test/support/deadline.h"
#endif

namespace hvd {
namespace {

enum class Kind { kInproc, kGloo };

// Leaders with world ranks 3, 10, 17, ...: an index is no rank.
class Leaders {
 public:
  Leaders(Kind kind, uint32_t size) : kind_(kind) {
    for (uint32_t i = 0; i < size; ++i) ranks_.push_back(3 + 7 * i);
    for (uint32_t rank : ranks_) crosses_.push_back(MakeOne(rank));
  }

  InterHostComm& at(uint32_t index) { return *crosses_[index]; }
  void Leave(uint32_t index) { crosses_[index].reset(); }
  uint32_t size() const { return static_cast<uint32_t>(ranks_.size()); }
  uint32_t rank(uint32_t index) const { return ranks_[index]; }
  InterHostCall Call(uint32_t index, uint64_t tag = 1) const { return {{ranks_, index}, tag}; }
  // One thread per leader.
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
  test::MemoryKvStore directory_;
  std::vector<uint32_t> ranks_;
  std::vector<std::unique_ptr<InterHostComm>> crosses_;
};

void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

using Bytes = std::vector<std::byte>;

// Ones and twos (of a bool both values): sums and products of a few of them are exact in every
// type.
Bytes Values(DType dtype, size_t count, uint32_t seed) {
  Bytes data(count * SizeOf(dtype));
  constexpr uint16_t kHalf[] = {0x3c00, 0x4000}, kBrain[] = {0x3f80, 0x4000};
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = (seed * 13 + i * 7 + i / 5) % 3 == 0 ? 2 : 1;
    const uint8_t truth = value == 2 ? 1 : 0;
    float single = static_cast<float>(value);
    double twice = static_cast<double>(value);
    const void* from = &value;
    if (dtype == DType::kBool) from = &truth;
    if (dtype == DType::kFloat32) from = &single;
    if (dtype == DType::kFloat64) from = &twice;
    if (dtype == DType::kFloat16) from = &kHalf[value - 1];
    if (dtype == DType::kBfloat16) from = &kBrain[value - 1];
    std::memcpy(data.data() + i * SizeOf(dtype), from, SizeOf(dtype));
  }
  return data;
}

Bytes Combined(const ReduceSpec& spec, const std::vector<Bytes>& parts) {
  std::vector<const void*> inputs;
  for (const Bytes& part : parts) inputs.push_back(part.data());
  Bytes result(parts[0].size());
  void* output = result.data();
  ReduceRange(spec, inputs, {&output, 1}, 0, result.size() / SizeOf(spec.dtype));
  return result;
}

std::vector<Bytes> ValuesOfAll(uint32_t leaders, DType dtype, size_t count) {
  std::vector<Bytes> parts;
  for (uint32_t i = 0; i < leaders; ++i) parts.push_back(Values(dtype, count, i));
  return parts;
}

std::vector<DType> AllTypes() {
  std::vector<DType> types;
  for (int i = 0; i < kDTypeCount; ++i) types.push_back(static_cast<DType>(i));
  return types;
}

// Any bytes, different for each leader and receiver.
Bytes Noise(size_t bytes, uint32_t from, uint32_t to) {
  Bytes data(bytes);
  uint32_t state = from * 7919 + to * 104729 + 1;
  for (std::byte& b : data) {
    state = state * 1664525 + 1013904223;
    b = static_cast<std::byte>(state >> 24);
  }
  return data;
}

class InterHostCommContract : public ::testing::TestWithParam<Kind> {};

// Floats of very different sizes, whose sum depends on the order in which they are added.
Bytes OrderedFloats(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  uint32_t state = seed * 7919 + 1;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    const float small = static_cast<float>(state >> 8) / 1e7F;
    value = (state & 64) != 0 ? small * 1e6F : -small;
  }
  Bytes data(count * sizeof(float));
  std::memcpy(data.data(), values.data(), data.size());
  return data;
}

TEST_P(InterHostCommContract, NoBitDependsOnHowALargeSumIsCut) {
  constexpr size_t kCount = 300'007;
  const ReduceSpec spec{DType::kFloat32, Arithmetic::kSum};
  for (uint32_t size : {2u, 3u}) {
    Leaders leaders(GetParam(), size);
    std::vector<Bytes> parts;
    for (uint32_t i = 0; i < size; ++i) parts.push_back(OrderedFloats(kCount, i));
    const Bytes expected = Combined(spec, parts);
    uint64_t tag = 0;
    // Pieces of 1 KiB: more than 64 of them, and the last is not a whole one.
    for (const SumCut& cut :
         {SumCut{}, SumCut{.piece_kib = 1, .pieces = 64}, SumCut{.piece_kib = 64, .pieces = 1},
          SumCut{.piece_kib = 64, .pieces = 5}, SumCut{.piece_kib = 300, .pieces = 64},
          SumCut{.piece_kib = 1 << 20, .pieces = 64},
          SumCut{.piece_kib = 512, .pieces = 3, .stripes = 3}, SumCut{.stripes = 16}}) {
      for (bool in_place : {false, true}) {
        ++tag;
        leaders.Run([&](uint32_t i) {
          InterHostCall call = leaders.Call(i, tag);
          call.cut = cut;
          Bytes input = parts[i], output(in_place ? 0 : input.size());
          std::byte* result = in_place ? input.data() : output.data();
          ExpectOk(leaders.at(i).Allreduce(call, spec, input.data(), result, kCount));
          EXPECT_EQ(std::memcmp(result, expected.data(), expected.size()), 0)
              << size << " leaders, pieces of " << cut.piece_kib << " KiB, stripes " << cut.stripes
              << ", leader " << i;
        });
      }
    }
  }
}

// The last leader comes late to every sum, so what the others send waits for it.
TEST_P(InterHostCommContract, EagerSumsWaitForALeaderThatComesLate) {
  const ReduceSpec spec{DType::kFloat32, Arithmetic::kSum};
  for (uint32_t size : {2u, 3u}) {
    Leaders leaders(GetParam(), size);
    uint64_t tag = 0;
    for (size_t count : {1000, 30'000, 65'536, 65'537, 300'000}) {
      ++tag;
      std::vector<Bytes> parts;
      for (uint32_t i = 0; i < size; ++i) parts.push_back(OrderedFloats(count, i));
      const Bytes expected = Combined(spec, parts);
      leaders.Run([&](uint32_t i) {
        if (i + 1 == size) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        InterHostCall call = leaders.Call(i, tag);
        call.cut.eager_kib = 256;
        Bytes output(parts[i].size());
        ExpectOk(leaders.at(i).Allreduce(call, spec, parts[i].data(), output.data(), count));
        EXPECT_EQ(output, expected) << size << " leaders, " << count << " elements, leader " << i;
      });
    }
  }
}

// Copies between memory of its own and the place of the sum, and counts what it is asked for.
class CountedCopies final : public SumCopies {
 public:
  CountedCopies(const Bytes& from, Bytes* place)
      : from_(from), place_(place), result(from.size()), filled(Count()), taken(Count()) {}
  void Fill(size_t first, size_t count) override {
    std::memcpy(place_->data() + first * 4, from_.data() + first * 4, count * 4);
    for (size_t i = first; i < first + count; ++i) ++filled[i];
  }
  void Take(size_t first, size_t count) override {
    std::memcpy(result.data() + first * 4, place_->data() + first * 4, count * 4);
    for (size_t i = first; i < first + count; ++i) taken[i] += filled[i];
  }
  size_t Count() const { return from_.size() / 4; }

 private:
  const Bytes& from_;
  Bytes* place_;

 public:
  Bytes result;
  std::vector<int> filled, taken;  // times, of each element
};

// Makes the sum of one leader by copies, by `make(call, place)`, and looks at what they were asked
// for.
template <typename Make>
void ExpectSumByCopies(InterHostCall call, const SumCut& cut, const Bytes& part,
                       const Bytes& expected, Make make) {
  Bytes place(part.size(), std::byte{0x77});
  CountedCopies copies(part, &place);
  call.cut = cut;
  call.copies = &copies;
  ExpectOk(make(call, place.data()));
  const size_t count = copies.Count();
  EXPECT_TRUE(copies.result == expected) << call.group.leaders.size() << " leaders, " << count;
  EXPECT_EQ(copies.filled, std::vector<int>(count, 1));
  EXPECT_EQ(copies.taken, std::vector<int>(count, 1));
}

TEST_P(InterHostCommContract, EachPartIsCopiedInOnceBeforeItIsReadAndOutOnceWhenItIsDone) {
  const ReduceSpec spec{DType::kFloat32, Arithmetic::kSum};
  for (uint32_t size : {1u, 2u, 3u}) {
    Leaders leaders(GetParam(), size);
    ASSERT_TRUE(leaders.at(0).CopiesByPart());
    uint64_t tag = 0;
    for (size_t count : {size_t{5}, size_t{300'007}}) {
      std::vector<Bytes> parts;
      for (uint32_t i = 0; i < size; ++i) parts.push_back(OrderedFloats(count, i));
      const Bytes expected = Combined(spec, parts);
      for (const SumCut& cut : {SumCut{}, SumCut{.piece_kib = 64, .pieces = 3, .stripes = 2}}) {
        ++tag;
        leaders.Run([&](uint32_t i) {
          ExpectSumByCopies(leaders.Call(i, tag), cut, parts[i], expected,
                            [&](const InterHostCall& call, std::byte* place) {
                              return leaders.at(i).Allreduce(call, spec, place, place, count);
                            });
        });
      }
    }
  }
}

TEST_P(InterHostCommContract, AllreduceOfEveryTypeSizeAndArithmetic) {
  for (uint32_t size : {1u, 2u, 3u, 5u}) {
    Leaders leaders(GetParam(), size);
    uint64_t tag = 0;
    for (DType dtype : AllTypes()) {
      for (size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{1001}}) {
        for (Arithmetic how :
             {Arithmetic::kSum, Arithmetic::kMin, Arithmetic::kMax, Arithmetic::kProduct}) {
          std::vector<Bytes> parts = ValuesOfAll(size, dtype, count);
          Bytes expected = Combined({dtype, how}, parts);
          ++tag;
          leaders.Run([&](uint32_t i) {
            ExpectOk(leaders.at(i).Allreduce(leaders.Call(i, tag), {dtype, how}, parts[i].data(),
                                             parts[i].data(), count));
            EXPECT_EQ(parts[i], expected)
                << size << " leaders, " << NameOf(dtype) << " x " << count;
          });
        }
      }
    }
  }
}

// From an input that keeps its content, with all scales; also for who is alone.
TEST_P(InterHostCommContract, AllreduceScalesFromInputToOutput) {
  for (uint32_t size : {1u, 2u, 3u}) {
    Leaders leaders(GetParam(), size);
    for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt32}) {
      const ReduceSpec spec{dtype, Arithmetic::kSum, 2.0, 0.5, static_cast<double>(size)};
      for (size_t count : {size_t{7}, size_t{300'000}}) {
        const std::vector<Bytes> parts = ValuesOfAll(size, dtype, count);
        const Bytes expected = Combined(spec, parts);
        leaders.Run([&](uint32_t i) {
          const Bytes before = parts[i];
          Bytes output(before.size());
          ExpectOk(leaders.at(i).Allreduce(leaders.Call(i), spec, parts[i].data(), output.data(),
                                           count));
          EXPECT_TRUE(output == expected) << size << " leaders, " << NameOf(dtype) << ", " << count;
          EXPECT_TRUE(parts[i] == before);
        });
      }
    }
  }
}

TEST_P(InterHostCommContract, LargeAllreduceIsRight) {
  for (uint32_t size : {2u, 3u, 5u}) {
    Leaders leaders(GetParam(), size);
    for (DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kUint8}) {
      for (size_t bytes : {size_t{200'004}, size_t{1'200'012}, size_t{9'000'004}}) {
        if (bytes > 2'000'000 && dtype != DType::kFloat32) continue;
        size_t count = bytes / SizeOf(dtype);
        std::vector<Bytes> parts = ValuesOfAll(size, dtype, count);
        Bytes expected = Combined({dtype, Arithmetic::kSum}, parts);
        leaders.Run([&](uint32_t i) {
          ExpectOk(leaders.at(i).Allreduce(leaders.Call(i), {dtype, Arithmetic::kSum},
                                           parts[i].data(), parts[i].data(), count));
          EXPECT_TRUE(parts[i] == expected)
              << size << " leaders, " << NameOf(dtype) << " x " << count;
        });
      }
    }
  }
}

// Sums that depend on the order: added in the order of the leaders, so the same bits everywhere and
// every time.
TEST_P(InterHostCommContract, RoundedSumsAreAddedInTheOrderOfTheLeaders) {
  for (uint32_t size : {2u, 3u, 5u}) {
    Leaders leaders(GetParam(), size);
    for (size_t count : {size_t{33}, size_t{100'003}, size_t{600'001}}) {
      for (DType dtype : {DType::kFloat32, DType::kFloat16}) {
        std::vector<Bytes> parts, again;
        for (uint32_t i = 0; i < size; ++i) {
          parts.push_back(Noise(count * SizeOf(dtype), i, 0));
          // No infinities and no NaN: the highest bit of the exponent stays clear.
          for (size_t k = SizeOf(dtype) - 1; k < parts[i].size(); k += SizeOf(dtype)) {
            parts[i][k] &= std::byte{0xbf};
          }
        }
        again = parts;
        const Bytes expected = Combined({dtype, Arithmetic::kSum}, parts);
        auto reduce = [&](std::vector<Bytes>& data) {
          leaders.Run([&](uint32_t i) {
            ExpectOk(leaders.at(i).Allreduce(leaders.Call(i), {dtype, Arithmetic::kSum},
                                             data[i].data(), data[i].data(), count));
          });
        };
        reduce(parts);
        reduce(again);
        for (uint32_t i = 0; i < size; ++i) {
          EXPECT_TRUE(parts[i] == expected && again[i] == expected)
              << size << " leaders, leader " << i << ", " << NameOf(dtype) << " x " << count;
        }
      }
    }
  }
}

TEST_P(InterHostCommContract, BroadcastFromEveryRoot) {
  for (uint32_t size : {1u, 2u, 5u}) {
    Leaders leaders(GetParam(), size);
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{70'001}, size_t{2'000'003}}) {
      for (uint32_t root = 0; root < size; ++root) {
        Bytes expected = Noise(bytes, root, 9);
        leaders.Run([&](uint32_t i) {
          Bytes data = i == root ? expected : Bytes(bytes);
          ExpectOk(leaders.at(i).Broadcast(leaders.Call(i), root, data.data(), bytes));
          EXPECT_TRUE(data == expected);
        });
      }
    }
  }
}

TEST_P(InterHostCommContract, AllgathervOfUnequalParts) {
  for (uint32_t size : {1u, 2u, 3u, 5u}) {
    Leaders leaders(GetParam(), size);
    for (size_t scale : {size_t{0}, size_t{1}, size_t{40'000}, size_t{600'000}}) {
      std::vector<size_t> bytes;
      Bytes expected;
      for (uint32_t i = 0; i < size; ++i) {
        bytes.push_back(i == 1 ? 0 : scale * (i + 1) + (scale > 0 ? 3 : 0));
        Bytes part = Noise(bytes[i], i, 0);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      for (bool in_place : {false, true}) {
        leaders.Run([&](uint32_t i) {
          Bytes part = Noise(bytes[i], i, 0), output(expected.size());
          size_t before = std::accumulate(bytes.begin(), bytes.begin() + i, size_t{0});
          const std::byte* input = part.data();
          if (in_place) {
            std::copy(part.begin(), part.end(), output.begin() + static_cast<ptrdiff_t>(before));
            input = output.data() + before;
          }
          ExpectOk(leaders.at(i).Allgatherv(leaders.Call(i), input, bytes, output.data()));
          EXPECT_TRUE(output == expected);
        });
      }
    }
  }
}

TEST_P(InterHostCommContract, AlltoallvOfUnequalPieces) {
  for (uint32_t size : {1u, 2u, 3u, 5u}) {
    Leaders leaders(GetParam(), size);
    for (size_t scale : {size_t{0}, size_t{1}, size_t{50'000}, size_t{400'000}}) {
      auto bytes = [&](uint32_t from, uint32_t to) { return scale * ((from * 3 + to) % 4); };
      leaders.Run([&](uint32_t i) {
        std::vector<size_t> sent, received;
        Bytes input, expected;
        for (uint32_t k = 0; k < size; ++k) {
          sent.push_back(bytes(i, k));
          received.push_back(bytes(k, i));
          Bytes piece = Noise(bytes(i, k), i, k), mine = Noise(bytes(k, i), k, i);
          input.insert(input.end(), piece.begin(), piece.end());
          expected.insert(expected.end(), mine.begin(), mine.end());
        }
        Bytes output(expected.size());
        ExpectOk(
            leaders.at(i).Alltoallv(leaders.Call(i), input.data(), sent, output.data(), received));
        EXPECT_TRUE(output == expected);
      });
    }
  }
}

TEST_P(InterHostCommContract, ReducescattervGivesEachItsPart) {
  for (uint32_t size : {1u, 2u, 3u, 5u}) {
    Leaders leaders(GetParam(), size);
    for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt64}) {
      for (size_t scale : {size_t{0}, size_t{1}, size_t{90'001}}) {
        std::vector<size_t> counts;
        for (uint32_t i = 0; i < size; ++i) counts.push_back(i == 2 ? 0 : scale + i);
        size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
        std::vector<Bytes> parts = ValuesOfAll(size, dtype, total);
        Bytes sum = Combined({dtype, Arithmetic::kSum}, parts);
        leaders.Run([&](uint32_t i) {
          size_t before = std::accumulate(counts.begin(), counts.begin() + i, size_t{0});
          Bytes input = parts[i], output(counts[i] * SizeOf(dtype));
          ExpectOk(leaders.at(i).Reducescatterv(leaders.Call(i), {dtype, Arithmetic::kSum},
                                                input.data(), counts, output.data()));
          EXPECT_TRUE(input == parts[i]);
          EXPECT_TRUE(std::equal(output.begin(), output.end(),
                                 sum.begin() + static_cast<ptrdiff_t>(before * SizeOf(dtype))));
        });
      }
    }
  }
}

TEST_P(InterHostCommContract, GroupsAndTagsDoNotMix) {
  Leaders leaders(GetParam(), 4);
  std::vector<uint32_t> even = {leaders.rank(0), leaders.rank(2)};
  std::vector<uint32_t> odd = {leaders.rank(1), leaders.rank(3)};
  leaders.Run([&](uint32_t i) {
    // Two groups at once in two threads: all, and half of them.
    std::thread half([&] {
      InterHostCall call{{i % 2 == 0 ? even : odd, i / 2}, 77};
      for (int round = 0; round < 20; ++round) {
        int64_t value = i;
        ExpectOk(
            leaders.at(i).Allreduce(call, {DType::kInt64, Arithmetic::kSum}, &value, &value, 1));
        EXPECT_EQ(value, i % 2 == 0 ? 2 : 4);
      }
    });
    for (int round = 0; round < 20; ++round) {
      int64_t value = i;
      ExpectOk(leaders.at(i).Allreduce(leaders.Call(i, 78), {DType::kInt64, Arithmetic::kSum},
                                       &value, &value, 1));
      EXPECT_EQ(value, 6);
    }
    half.join();
  });
}

// ---- small messages

std::span<const std::byte> AsBytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST_P(InterHostCommContract, SmallMessagesArriveInOrderPerSenderAndTag) {
  Leaders leaders(GetParam(), 2);
  for (int n = 0; n < 50; ++n) {
    for (uint64_t tag : {5, 6}) {
      std::string text = std::to_string(tag) + "/" + std::to_string(n);
      ExpectOk(leaders.at(0).Send(leaders.rank(1), tag, AsBytes(text), Soon()));
    }
  }
  for (uint64_t tag : {6, 5}) {
    for (int n = 0; n < 50; ++n) {
      Result<InterHostMessage> message = leaders.at(1).Receive(leaders.rank(0), tag, Soon());
      ASSERT_TRUE(message.ok()) << message.status().message();
      EXPECT_EQ(message->bytes, std::to_string(tag) + "/" + std::to_string(n));
      EXPECT_EQ(message->from, leaders.rank(0));
    }
  }
}

TEST_P(InterHostCommContract, EmptyAndLongestMessages) {
  Leaders leaders(GetParam(), 2);
  std::string longest(kMaxInterHostMessage, 'x');
  ExpectOk(leaders.at(0).Send(leaders.rank(1), 1, {}, Soon()));
  ExpectOk(leaders.at(0).Send(leaders.rank(1), 1, AsBytes(longest), Soon()));
  EXPECT_EQ(leaders.at(1).Receive(leaders.rank(0), 1, Soon())->bytes, "");
  EXPECT_EQ(leaders.at(1).Receive(leaders.rank(0), 1, Soon())->bytes, longest);
  longest += "x";
  EXPECT_EQ(leaders.at(0).Send(leaders.rank(1), 1, AsBytes(longest), Soon()).code(),
            Code::kInvalidArgument);
}

TEST_P(InterHostCommContract, ReceiveFromAnybodyHearsEverybody) {
  Leaders leaders(GetParam(), 5);
  leaders.Run([&](uint32_t i) {
    if (i > 0) return ExpectOk(leaders.at(i).Send(leaders.rank(0), 9, AsBytes("hello"), Soon()));
    std::vector<uint32_t> heard;
    for (int n = 1; n < 5; ++n) {
      Result<InterHostMessage> message = leaders.at(0).Receive(kAnyLeader, 9, Soon());
      ASSERT_TRUE(message.ok()) << message.status().message();
      EXPECT_EQ(message->bytes, "hello");
      heard.push_back(message->from);
    }
    std::sort(heard.begin(), heard.end());
    EXPECT_EQ(heard, (std::vector<uint32_t>{10, 17, 24, 31}));
  });
}

TEST_P(InterHostCommContract, ADeadlineInThePastAsksOnce) {
  Leaders leaders(GetParam(), 2);
  for (uint32_t from : {leaders.rank(1), kAnyLeader}) {
    EXPECT_EQ(leaders.at(0).Receive(from, 1, TimePoint{}).status().code(), Code::kInProgress);
  }
}

TEST_P(InterHostCommContract, WakeEndsAReceiveNowOrTheNextOne) {
  Leaders leaders(GetParam(), 2);
  leaders.at(0).Wake();
  EXPECT_EQ(leaders.at(0).Receive(kAnyLeader, 1, Soon()).status().code(), Code::kInProgress);
  std::thread waiter([&] {
    EXPECT_EQ(leaders.at(0).Receive(kAnyLeader, 1, Soon()).status().code(), Code::kInProgress);
  });
  leaders.at(0).Wake();
  waiter.join();
}

// ---- ends

TEST_P(InterHostCommContract, AbortEndsEveryWaitAndTellsTheOthers) {
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

TEST_P(InterHostCommContract, WhoWaitsForALeaderThatLeavesIsTold) {
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

TEST_P(InterHostCommContract, WhatALeaverSaidIsHeardBeforeItsEnd) {
  Leaders leaders(GetParam(), 2);
  const char words[] = "farewell";
  ExpectOk(leaders.at(1).Send(leaders.rank(0), 4, std::as_bytes(std::span(words)), Soon()));
  leaders.Leave(1);
  Result<InterHostMessage> heard = leaders.at(0).Receive(leaders.rank(1), 4, Soon());
  ASSERT_TRUE(heard.ok()) << heard.status().message();
  EXPECT_STREQ(heard->bytes.c_str(), words);
  EXPECT_EQ(leaders.at(0).Receive(leaders.rank(1), 4, Soon()).status().code(), Code::kAborted);
}

TEST_P(InterHostCommContract, AnIdleLimitEndsACollectiveInWhichNothingMoves) {
  Leaders leaders(GetParam(), 2);
  float value = 1;
  InterHostCall call = leaders.Call(0);
  call.idle_limit = std::chrono::milliseconds(20);
  EXPECT_EQ(leaders.at(0).Allreduce(call, {}, &value, &value, 1).code(), Code::kInProgress);
}

// A leader that is late, or stopped, is a matter of the stall check.
TEST_P(InterHostCommContract, WithoutALimitALateLeaderIsWaitedFor) {
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
  for (uint32_t i = 0; i < 3; ++i) parts.push_back(OrderedFloats(count, i));
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
  const std::vector<Bytes> parts = {OrderedFloats(count, 0), OrderedFloats(count, 1)};
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
      for (uint32_t i = 0; i < size; ++i) parts.push_back(OrderedFloats(count, i));
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

INSTANTIATE_TEST_SUITE_P(All, InterHostCommContract, ::testing::Values(Kind::kInproc, Kind::kGloo),
                         [](const auto& kind) {
                           return kind.param == Kind::kGloo ? "Gloo" : "Inproc";
                         });
#else
INSTANTIATE_TEST_SUITE_P(All, InterHostCommContract, ::testing::Values(Kind::kInproc),
                         [](const auto&) { return "Inproc"; });
#endif

}  // namespace
}  // namespace hvd
