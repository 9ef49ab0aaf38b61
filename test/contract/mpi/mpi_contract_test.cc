// The contracts of InterHostComm (contract/runtime/inter_host_contract.h) and of MpiWorld, between
// the ranks that mpirun started. Every rank runs every test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "mpi_rig.h"
#include "runtime/backends/mpi/mpi_streams.h"
#include "test/contract/runtime/inter_host_contract.h"
#include "test/contract/runtime/inter_host_values.h"

namespace hvd::test {

Rig& TheRig() {
  static Rig rig;
  return rig;
}

namespace {

uint32_t Rank() { return TheRig().world->rank(); }
uint32_t Size() { return TheRig().world->size(); }
InterHostComm& TheInterHostComm() { return *TheRig().inter_host; }

// The same number on all ranks for the same call.
uint64_t NextTag() {
  static uint64_t tag = 1000;  // the contract's are below
  return tag++;
}

// Of all ranks.
InterHostCall Call(uint64_t tag = NextTag()) {
  static const std::vector<uint32_t> everybody = TheRig().Everybody();
  return {.group = {everybody, Rank()}, .tag = tag, .idle_limit = kDeadline};
}

// Every process of mpirun is one leader, of the one world that there is.
class MpiLeaders final : public LeaderWorld {
 public:
  void Run(const std::function<void(const Leader&)>& body) override {
    body({TheInterHostComm(), ranks_, Rank()});
  }

 private:
  const std::vector<uint32_t> ranks_ = TheRig().Everybody();
};

INSTANTIATE_TEST_SUITE_P(All, InterHostContract,
                         ::testing::Values(InterHostImplementation{
                             .name = "Mpi",
                             .sizes = [] { return std::vector<uint32_t>{Size()}; },
                             .open = [](uint32_t) { return std::make_unique<MpiLeaders>(); }}),
                         NameOfImplementation);

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

// ---- what MPI alone promises

TEST(MpiInterHostComm, AGroupWithoutThisRankIsRefused) {
  std::vector<uint32_t> others{Rank() + 1};
  float data = 0;
  InterHostCall call{{others, 0}, 1};
  EXPECT_EQ(TheInterHostComm().Allreduce(call, {}, &data, &data, 1).code(), Code::kInvalidArgument);
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
      Bytes data[] = {Values(DType::kFloat32, counts[0], Rank()),
                      Values(DType::kInt32, counts[1], Rank())};
      ReduceSpec kinds[] = {{DType::kFloat32, Arithmetic::kSum}, {DType::kInt32, Arithmetic::kMax}};
      Status statuses[2];
      auto work = [&](int which) {
        statuses[which] =
            TheInterHostComm().Allreduce(Call(which == 0 ? tag : second), kinds[which],
                                         data[which].data(), data[which].data(), counts[which]);
      };
      // Different ranks begin with different ones.
      int first = static_cast<int>((Rank() + static_cast<uint32_t>(round)) % 2);
      std::thread thread(work, first);
      work(1 - first);
      thread.join();
      for (int which : {0, 1}) {
        ASSERT_TRUE(statuses[which].ok()) << statuses[which].message();
        EXPECT_TRUE(data[which] == CombinedValues(Size(), kinds[which], counts[which]));
      }
    }
  }
}

TEST(MpiInterHostComm, ARankMaySendToItself) {
  const std::string text(kMaxInterHostMessage, static_cast<char>('a' + Rank()));
  const uint64_t tag = NextTag();
  ExpectOk(TheInterHostComm().Send(Rank(), tag, AsBytes(text), Rig::Soon()));
  Result<InterHostMessage> message = TheInterHostComm().Receive(Rank(), tag, Rig::Soon());
  ASSERT_TRUE(message.ok()) << message.status().message();
  EXPECT_TRUE(message->bytes == text);
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
