// The contract of InterHostComm and of MpiWorld, between the ranks that mpirun started. Every rank
// runs every test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "mpi_rig.h"
#include "runtime/backends/mpi/mpi_streams.h"

namespace hvd::test {

Rig& TheRig() {
  static Rig rig;
  return rig;
}

namespace {

using Bytes = std::vector<std::byte>;

uint32_t Rank() { return TheRig().world->rank(); }
uint32_t Size() { return TheRig().world->size(); }
InterHostComm& TheInterHostComm() { return *TheRig().inter_host; }

// The same number on all ranks for the same call.
uint64_t NextTag() {
  static uint64_t tag = 100;
  return tag++;
}

struct Call {
  explicit Call(std::vector<uint32_t> ranks, uint64_t tag = NextTag()) : leaders(std::move(ranks)) {
    for (uint32_t i = 0; i < leaders.size(); ++i) {
      if (leaders[i] == Rank()) call.group.index = i;
    }
    call.group.leaders = leaders;
    call.tag = tag;
    call.idle_limit = std::chrono::seconds(60);
  }
  Call() : Call(TheRig().Everybody()) {}
  operator const InterHostCall&() const { return call; }
  uint32_t index() const { return call.group.index; }

  std::vector<uint32_t> leaders;
  InterHostCall call;
};

// The values that a rank brings: known to all, so that each can compute the result.
Bytes Values(uint32_t rank, DType dtype, size_t count) {
  Bytes bytes(count * SizeOf(dtype));
  std::mt19937 random(rank * 1000 + static_cast<uint32_t>(dtype));
  auto fill = [&](auto make) {
    using T = decltype(make());
    for (size_t i = 0; i < count; ++i) {
      T value = make();
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  };
  std::uniform_real_distribution<float> real(-2.0f, 2.0f);
  switch (dtype) {
    case DType::kFloat32: fill([&] { return real(random); }); break;
    case DType::kFloat64: fill([&] { return static_cast<double>(real(random)); }); break;
    case DType::kFloat16:  // 1 to 2, either sign
      fill([&] { return static_cast<uint16_t>(0x3c00 | (random() & 0x83ff)); });
      break;
    case DType::kBfloat16:
      fill([&] { return static_cast<uint16_t>(0x3f80 | (random() & 0x807f)); });
      break;
    case DType::kFloat8E4m3:
      fill([&] { return static_cast<uint8_t>(0x38 | (random() & 0x87)); });
      break;
    case DType::kFloat8E5m2:
      fill([&] { return static_cast<uint8_t>(0x3c | (random() & 0x83)); });
      break;
    case DType::kBool: fill([&] { return static_cast<uint8_t>(random() & 1); }); break;
    default:
      fill([&] {
        return static_cast<uint8_t>(random());
        return uint8_t{};
      });
      break;
  }
  return bytes;
}

Bytes RandomBytes(uint32_t seed, size_t count) {
  Bytes bytes(count);
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// In the order of the leaders, all at once.
Bytes Reference(const std::vector<uint32_t>& leaders, const ReduceSpec& arithmetic, size_t count) {
  std::vector<Bytes> all;
  std::vector<const void*> inputs;
  for (uint32_t rank : leaders) all.push_back(Values(rank, arithmetic.dtype, count));
  for (const Bytes& one : all) inputs.push_back(one.data());
  Bytes result(count * SizeOf(arithmetic.dtype));
  void* output = result.data();
  ReduceRange({.dtype = arithmetic.dtype, .arithmetic = arithmetic.arithmetic}, inputs,
              std::span(&output, 1), 0, count);
  return result;
}

constexpr size_t kCounts[] = {0, 1, 2, 7, 1000, 65'537, 300'001};
constexpr Arithmetic kArithmetics[] = {Arithmetic::kSum, Arithmetic::kMin, Arithmetic::kMax,
                                       Arithmetic::kProduct};

std::vector<DType> AllDTypes() {
  std::vector<DType> dtypes;
  for (int d = 0; d < kDTypeCount; ++d) dtypes.push_back(static_cast<DType>(d));
  return dtypes;
}

void ExpectAllreduce(const std::vector<uint32_t>& leaders, const ReduceSpec& arithmetic,
                     size_t count) {
  SCOPED_TRACE(testing::Message() << NameOf(arithmetic.dtype) << " x " << count << ", arithmetic "
                                  << static_cast<int>(arithmetic.arithmetic));
  Bytes data = Values(Rank(), arithmetic.dtype, count);
  Status status =
      TheInterHostComm().Allreduce(Call(leaders), arithmetic, data.data(), data.data(), count);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(data == Reference(leaders, arithmetic, count));
}

// ---- the world

TEST(MpiWorld, KnowsItsRanks) {
  MpiWorld& world = *TheRig().world;
  EXPECT_EQ(std::to_string(Size()), std::getenv("OMPI_COMM_WORLD_SIZE"));
  EXPECT_EQ(std::to_string(Rank()), std::getenv("OMPI_COMM_WORLD_RANK"));
  ASSERT_EQ(world.places().size(), Size());
  for (uint32_t r = 0; r < Size(); ++r) EXPECT_EQ(world.places()[r], (RankPlace{0, r}));
  EXPECT_THAT(world.description(), testing::HasSubstr("Open MPI"));
}

TEST(MpiWorld, ExchangesValuesOfAnyLength) {
  for (size_t most : {size_t{0}, size_t{5}, kMaxMpiValue}) {
    auto value = [&](uint32_t rank) {
      return std::string(rank % 2 == 0 ? most : most / 2, static_cast<char>('a' + rank));
    };
    auto values = TheRig().world->Exchange(value(Rank()), Rig::Soon());
    ASSERT_TRUE(values.ok()) << values.status().message();
    ASSERT_EQ(values->size(), Size());
    for (uint32_t r = 0; r < Size(); ++r) EXPECT_TRUE((*values)[r] == value(r)) << r;
  }
  EXPECT_EQ(
      TheRig().world->Exchange(std::string(kMaxMpiValue + 1, 'x'), Rig::Soon()).status().code(),
      Code::kInvalidArgument);
}

TEST(MpiWorld, HasOneIdOnAllRanks) {
  const std::string& id = TheRig().world->id();
  EXPECT_EQ(id.size(), 32u);
  auto ids = TheRig().world->Exchange(id, Rig::Soon());
  ASSERT_TRUE(ids.ok());
  EXPECT_THAT(*ids, testing::Each(id));
}

// ---- collectives

TEST(MpiInterHostComm, AllreduceAddsInTheOrderOfLeaders) {
  for (DType dtype : AllDTypes()) {
    for (size_t count : kCounts) {
      ExpectAllreduce(TheRig().Everybody(), {dtype, Arithmetic::kSum}, count);
    }
  }
}

TEST(MpiInterHostComm, AllreduceKnowsAllArithmetic) {
  for (Arithmetic arithmetic : kArithmetics) {
    for (DType dtype : AllDTypes()) {
      ExpectAllreduce(TheRig().Everybody(), {dtype, arithmetic}, 20'001);
    }
  }
}

TEST(MpiInterHostComm, GroupsMayBeAnyLeadersInAnyOrder) {
  std::vector<uint32_t> backwards = TheRig().Everybody();
  std::reverse(backwards.begin(), backwards.end());
  ExpectAllreduce(backwards, {DType::kFloat32, Arithmetic::kSum}, 100'003);
  std::vector<uint32_t> even;
  for (uint32_t r = 0; r < Size(); r += 2) even.push_back(r);
  uint64_t tag = NextTag();
  if (Rank() % 2 != 0) return;
  Bytes data = Values(Rank(), DType::kFloat32, 100'003);
  Status status =
      TheInterHostComm().Allreduce(Call(even, tag), {}, data.data(), data.data(), 100'003);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(data == Reference(even, {}, 100'003));
}

TEST(MpiInterHostComm, AGroupWithoutThisRankIsRefused) {
  std::vector<uint32_t> others{Rank() + 1};
  float data = 0;
  InterHostCall call{{others, 0}, 1};
  EXPECT_EQ(TheInterHostComm().Allreduce(call, {}, &data, &data, 1).code(), Code::kInvalidArgument);
}

TEST(MpiInterHostComm, BroadcastGivesWhatTheRootHas) {
  for (uint32_t root = 0; root < Size(); ++root) {
    for (size_t bytes : {0, 1, 3, 262'111, 262'112, 262'113, 1'500'000}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes from " << root);
      Bytes data = RandomBytes(Rank(), bytes);
      Status status = TheInterHostComm().Broadcast(Call(), root, data.data(), bytes);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(data == RandomBytes(root, bytes));
    }
  }
}

TEST(MpiInterHostComm, AllgathervTakesUnequalParts) {
  for (size_t unit : {0, 1, 100'000}) {
    std::vector<size_t> bytes;
    Bytes expected;
    size_t before = 0;
    for (uint32_t r = 0; r < Size(); ++r) {
      if (r == Rank()) before = expected.size();
      bytes.push_back(unit * ((r + 1) % 3));  // the third brings nothing
      Bytes part = RandomBytes(r, bytes.back());
      expected.insert(expected.end(), part.begin(), part.end());
    }
    Bytes input = RandomBytes(Rank(), bytes[Rank()]);
    Bytes output(expected.size());
    Status status = TheInterHostComm().Allgatherv(Call(), input.data(), bytes, output.data());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(output == expected);
    // In place.
    Bytes again(expected.size());
    std::copy(input.begin(), input.end(), again.begin() + static_cast<ptrdiff_t>(before));
    status = TheInterHostComm().Allgatherv(Call(), again.data() + before, bytes, again.data());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(again == expected);
  }
}

TEST(MpiInterHostComm, AlltoallvSendsEachItsPart) {
  auto bytes = [](uint32_t from, uint32_t to) { return size_t{70'000} * ((from + 2 * to) % 4); };
  Bytes input, expected;
  std::vector<size_t> send, receive;
  for (uint32_t r = 0; r < Size(); ++r) {
    send.push_back(bytes(Rank(), r));
    receive.push_back(bytes(r, Rank()));
    Bytes to = RandomBytes(Rank() * 100 + r, send.back());
    Bytes from = RandomBytes(r * 100 + Rank(), receive.back());
    input.insert(input.end(), to.begin(), to.end());
    expected.insert(expected.end(), from.begin(), from.end());
  }
  Bytes output(expected.size());
  Status status = TheInterHostComm().Alltoallv(Call(), input.data(), send, output.data(), receive);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(output == expected);
}

TEST(MpiInterHostComm, ReducescattervCombinesUnevenParts) {
  for (size_t unit : {size_t{0}, size_t{1}, size_t{90'001}}) {
    std::vector<size_t> counts;
    size_t before = 0, total = 0;
    for (uint32_t r = 0; r < Size(); ++r) {
      if (r == Rank()) before = total;
      counts.push_back(unit * ((r + 1) % 3));
      total += counts.back();
    }
    Bytes whole = Reference(TheRig().Everybody(), {}, total);
    auto part = [&](const Bytes& of) {
      auto first = of.begin() + static_cast<ptrdiff_t>(before * 4);
      return Bytes(first, first + static_cast<ptrdiff_t>(counts[Rank()] * 4));
    };
    Bytes input = Values(Rank(), DType::kFloat32, total), kept = input;
    Bytes output(counts[Rank()] * 4);
    Status status =
        TheInterHostComm().Reducescatterv(Call(), {}, input.data(), counts, output.data());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(output == part(whole));
    EXPECT_TRUE(input == kept);
    // Into its own part of the input; the rest of the input stays.
    status = TheInterHostComm().Reducescatterv(Call(), {}, input.data(), counts,
                                               input.data() + before * 4);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(part(input) == part(whole));
    Bytes result = part(whole);
    std::copy(result.begin(), result.end(), kept.begin() + static_cast<ptrdiff_t>(before * 4));
    EXPECT_TRUE(input == kept);
  }
}

TEST(MpiInterHostComm, MoreBytesThanAnIntCounts) {
  if (std::getenv("HVD_SOAK") == nullptr || Size() != 2) GTEST_SKIP() << "needs 5 GB; HVD_SOAK=1";
  size_t bytes = (size_t{1} << 31) + 12'345;
  Bytes data(bytes, static_cast<std::byte>(Rank()));
  data.back() = static_cast<std::byte>(7 + Rank());
  Status status = TheInterHostComm().Broadcast(Call(), 1, data.data(), bytes);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(data[0], std::byte{1});
  EXPECT_EQ(data[bytes / 2], std::byte{1});
  EXPECT_EQ(data.back(), std::byte{8});
  status = TheInterHostComm().Allreduce(Call(), {DType::kUint8, Arithmetic::kSum}, data.data(),
                                        data.data(), bytes);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(data[bytes / 2], std::byte{2});
  EXPECT_EQ(data.back(), std::byte{16});
}

// ---- several at once

// Another tag that MPI cannot tell from the first: one whose product with the factor of MpiTagOf
// differs in the last bit.
uint64_t TagThatMeets(uint64_t tag) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
  uint64_t inverse = kFactor;  // modulo 2^64; each round doubles the bits that are right
  for (int i = 0; i < 5; ++i) inverse *= 2 - kFactor * inverse;
  uint64_t other = ((tag * kFactor) ^ 1) * inverse;
  EXPECT_EQ(MpiTagOf(other), MpiTagOf(tag));
  EXPECT_NE(other, tag);
  return other;
}

TEST(MpiInterHostComm, TwoGroupsAtOnceNeverMix) {
  const uint64_t tag = NextTag(), other = TagThatMeets(tag);
  const uint64_t apart = NextTag();
  for (uint64_t second : {apart, other}) {
    for (int round = 0; round < 10; ++round) {
      size_t counts[] = {200'003, 150'001};
      Bytes data[] = {Values(Rank(), DType::kFloat32, counts[0]),
                      Values(Rank(), DType::kInt32, counts[1])};
      ReduceSpec kinds[] = {{DType::kFloat32, Arithmetic::kSum}, {DType::kInt32, Arithmetic::kMax}};
      Status statuses[2];
      auto work = [&](int which) {
        Call call(TheRig().Everybody(), which == 0 ? tag : second);
        statuses[which] = TheInterHostComm().Allreduce(call, kinds[which], data[which].data(),
                                                       data[which].data(), counts[which]);
      };
      // Different ranks begin with different ones.
      int first = static_cast<int>((Rank() + static_cast<uint32_t>(round)) % 2);
      std::thread thread(work, first);
      work(1 - first);
      thread.join();
      for (int which : {0, 1}) {
        ASSERT_TRUE(statuses[which].ok()) << statuses[which].message();
        EXPECT_TRUE(data[which] == Reference(TheRig().Everybody(), kinds[which], counts[which]));
      }
    }
  }
}

// ---- small messages

std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(MpiInterHostComm, MessagesComeInOrder) {
  uint64_t tag = NextTag(), other = NextTag();
  uint32_t next = (Rank() + 1) % Size(), previous = (Rank() + Size() - 1) % Size();
  for (int i = 0; i < 50; ++i) {
    std::string text = std::to_string(Rank()) + " says " + std::to_string(i);
    ASSERT_TRUE(TheInterHostComm().Send(next, tag, AsBytes(text), Rig::Soon()).ok());
    ASSERT_TRUE(TheInterHostComm().Send(next, other, AsBytes("other"), Rig::Soon()).ok());
  }
  for (int i = 0; i < 50; ++i) {
    auto message = TheInterHostComm().Receive(previous, tag, Rig::Soon());
    ASSERT_TRUE(message.ok()) << message.status().message();
    EXPECT_EQ(message->bytes, std::to_string(previous) + " says " + std::to_string(i));
    EXPECT_EQ(message->from, previous);
  }
  for (int i = 0; i < 50; ++i) {
    auto message = TheInterHostComm().Receive(kAnyLeader, other, Rig::Soon());
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->bytes, "other");
  }
}

TEST(MpiInterHostComm, TheLongestMessagesCrossEachOther) {
  uint64_t tag = NextTag();
  std::string text(kMaxInterHostMessage, static_cast<char>('a' + Rank()));
  for (uint32_t r = 0; r < Size(); ++r) {
    Status status = TheInterHostComm().Send(r, tag, AsBytes(text), Rig::Soon());
    ASSERT_TRUE(status.ok()) << status.message();
  }
  for (uint32_t r = 0; r < Size(); ++r) {
    auto message = TheInterHostComm().Receive(r, tag, Rig::Soon());
    ASSERT_TRUE(message.ok()) << message.status().message();
    EXPECT_TRUE(message->bytes == std::string(kMaxInterHostMessage, static_cast<char>('a' + r)));
  }
  text += "x";
  EXPECT_EQ(TheInterHostComm().Send(0, tag, AsBytes(text), Rig::Soon()).code(),
            Code::kInvalidArgument);
}

TEST(MpiInterHostComm, ReceiveEndsAtItsDeadlineAndWhenWoken) {
  uint64_t tag = NextTag();
  EXPECT_EQ(TheInterHostComm().Receive(kAnyLeader, tag, TimePoint{}).status().code(),
            Code::kInProgress);
  EXPECT_EQ(TheInterHostComm().Receive(0, tag, Rig::In(5)).status().code(), Code::kInProgress);
  TheInterHostComm().Wake();
  EXPECT_EQ(TheInterHostComm().Receive(0, tag, Rig::Soon()).status().code(), Code::kInProgress);
  std::thread waker([] { TheInterHostComm().Wake(); });
  EXPECT_EQ(TheInterHostComm().Receive(kAnyLeader, tag, Rig::Soon()).status().code(),
            Code::kInProgress);
  waker.join();
}

// ---- a communicator of the application

TEST(MpiWorld, ASubCommunicatorIsAWorldOfItsOwn) {
  if (!TheRig().world->threads_supported()) GTEST_SKIP() << "this thread may not call MPI";
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, static_cast<int>(Rank() % 2), static_cast<int>(Rank()), &half);
  MpiJoinOptions options{.comm = &half, .deadline = Rig::Soon()};
  Status status;
  std::unique_ptr<MpiWorld> world(TheRig().plugin.join(&options, &status));
  ASSERT_NE(world, nullptr) << status.message();
  EXPECT_EQ(world->rank(), Rank() / 2);
  EXPECT_EQ(world->size(), (Size() + 1 - Rank() % 2) / 2);
  EXPECT_EQ(world->places().size(), world->size());
  auto ids = TheRig().world->Exchange(world->id(), Rig::Soon());
  ASSERT_TRUE(ids.ok());
  for (uint32_t r = 0; r < Size(); ++r) EXPECT_EQ((*ids)[r] == world->id(), r % 2 == Rank() % 2);
  auto inter_host = world->OpenInterHostComm();
  ASSERT_TRUE(inter_host.ok());
  float sum = static_cast<float>(Rank());
  std::vector<uint32_t> leaders(world->size());
  std::iota(leaders.begin(), leaders.end(), 0u);
  ASSERT_TRUE((*inter_host)->Allreduce({{leaders, world->rank()}, 1}, {}, &sum, &sum, 1).ok());
  float expected = 0;
  for (uint32_t r = Rank() % 2; r < Size(); r += 2) expected += static_cast<float>(r);
  EXPECT_EQ(sum, expected);
  inter_host->reset();
  world.reset();
  MPI_Comm_free(&half);
}

TEST(MpiWorld, NoCommunicatorIsRefused) {
  MPI_Comm none = MPI_COMM_NULL;
  MpiJoinOptions options{.comm = &none, .deadline = Rig::Soon()};
  Status status;
  EXPECT_EQ(TheRig().plugin.join(&options, &status), nullptr);
  EXPECT_THAT(status.message(), testing::HasSubstr("MPI_COMM_NULL"));
}

TEST(MpiPlugin, SaysWhyItCannotBeLoaded) {
  Result<MpiPlugin> plugin = LoadMpiPlugin("/nowhere");
  EXPECT_EQ(plugin.status().code(), Code::kUnsupported);
  EXPECT_THAT(plugin.status().message(), testing::HasSubstr("/nowhere/libhvd_mpi.so"));
}

}  // namespace
}  // namespace hvd::test

int main(int argc, char** argv) {
  const char* launched = std::getenv("OMPI_COMM_WORLD_RANK");
  if (launched != nullptr && std::string(launched) != "0") testing::GTEST_FLAG(brief) = true;
  testing::InitGoogleTest(&argc, argv);
  hvd::test::Rig& rig = hvd::test::TheRig();
  std::string end;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--threads=one") rig.one_thread = true;
    if (argument.starts_with("--end=")) end = argument.substr(6);
    if (argument == "--application=late") return hvd::test::RunLate();
    if (argument.starts_with("--application="))
      return hvd::test::RunInApplication(argument.substr(14));
  }
  if (std::string why = rig.Open(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 2;
  }
  if (!end.empty()) return hvd::test::RunEnd(end);
  int result = RUN_ALL_TESTS();
  (void)rig.world->Exchange("", hvd::test::Rig::Soon());  // nobody leaves while another still tests
  rig.Close();
  return result;
}
