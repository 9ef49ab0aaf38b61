// Process sets of one host that share ranks: whatever ranks submit first, and whatever their GPUs
// are ready for first, no two wait for each other, although a GPU has room for the kernel of one
// communicator.
#include <gmock/gmock.h>

#include "test/fakes/cuda/cuda_cases.h"

namespace hvd::test {
namespace {

const std::vector<std::vector<uint32_t>> kSets = {{}, {0, 1}, {1, 2, 3}, {0, 3}, {1, 3}, {2, 3}};

// Each operation has a size of its own, so that the fake finds members that call different things.
std::vector<Case> CasesOfSets(int64_t rounds) {
  std::vector<Case> cases;
  for (int64_t round = 1; round <= rounds; ++round) {
    const std::vector<uint32_t>& set = kSets[static_cast<size_t>(round) % kSets.size()];
    const size_t members = set.empty() ? 4 : set.size();
    cases.push_back({.rows = std::vector<int64_t>(members, round * 10), .set = set});
    cases.push_back({.collective = Collective::kAllgather,
                     .rows = std::vector<int64_t>(members, round),
                     .set = set});
  }
  return cases;
}

TEST(CudaSetsOfOneHost, HaveOneOrder) {
  for (const int slowness : {0, 2}) {
    CudaMembers members({.members = 4, .slowness = slowness});
    for (uint32_t seed = 0; seed < 12; ++seed) Check(members, CasesOfSets(12), 100 + seed);
    EXPECT_EQ(members.cuda.Waits(), 0) << "the processor never waits";
    for (uint32_t m = 0; m < 4; ++m) members.Drop(m);
    members.ExpectClean();
  }
}

// Member 0 orders a batch of the world and one of the set before member 1 has heard of either; then
// member 1 hears of them in the other order.
TEST(CudaSetsOfOneHost, AreGivenInTheOrderOfTheirTurns) {
  CudaMembers members({.members = 2 + 1});
  Check(members, {{.rows = {3, 3, 3}}, {.rows = {3, 3}, .set = {0, 1}}}, 1);
  std::vector<CudaOperation> operations;
  operations.push_back(Make(members, {.rows = {3, 3, 3}}));
  operations.push_back(Make(members, {.rows = {3, 3}, .set = {0, 1}}));
  for (uint32_t m = 0; m < 3; ++m) members.Step(operations[0], m);
  for (uint32_t m = 0; m < 2; ++m) members.Step(operations[1], m);
  for (CudaOperation& operation : operations) {  // started, ordered, given
    for (int step = 0; step < 2; ++step) members.Step(operation, 0);
    EXPECT_EQ(operation.parts[0].stage, CudaPart::Stage::kDone);
  }
  const int before = members.nccl.Count("ncclAllReduce");
  for (int step = 0; step < 3; ++step) members.Step(operations[1], 1);
  EXPECT_EQ(operations[1].parts[1].stage, CudaPart::Stage::kStarted) << "it waits for its turn";
  EXPECT_EQ(members.nccl.Count("ncclAllReduce"), before);
  members.Step(operations[0], 1);
  members.Step(operations[1], 1);
  EXPECT_EQ(operations[1].parts[1].stage, CudaPart::Stage::kDone) << "and gives what is before it";
  members.Run(operations, 2);
  for (CudaOperation& operation : operations) {
    for (CudaPart& part : operation.parts) EXPECT_TRUE(part.status.ok()) << part.status.message();
  }
  for (uint32_t m = 0; m < 3; ++m) members.Drop(m);
  members.ExpectClean();
}

// The GPU of member 1 is ready for the second set first, the others' for the first.
TEST(CudaSetsOfOneHost, FollowEachOtherOnTheGpu) {
  CudaMembers members({.members = 3});
  Check(members, {{.rows = {3, 3, 3}}, {.rows = {3, 3}, .set = {0, 1}}}, 1);
  std::vector<CudaOperation> operations;
  operations.push_back(Make(members, {.rows = {3, 3, 3}}));
  operations.push_back(Make(members, {.rows = {3, 3}, .set = {0, 1}}));
  CuStreamObject* late = members.cuda.MakeStream();
  operations[0].parts[1].call.stream = late;
  for (int step = 0; step < 10; ++step) {
    for (CudaOperation& operation : operations) {
      for (uint32_t m = 0; m < 3; ++m) {
        if (operation.Takes(m)) members.Step(operation, m);
      }
    }
  }
  // All but the input of the world's operation on member 1, as long as there is something to do.
  for (int round = 0; round < 50; ++round) {
    for (const auto& stream : members.cuda.streams) {
      if (stream.get() != late && !stream->destroyed) members.cuda.Run(stream.get());
    }
  }
  EXPECT_TRUE(members.cuda.Run()) << "two kernels wait for each other";
  for (CudaOperation& operation : operations) {
    for (CudaPart& part : operation.parts) EXPECT_TRUE(part.status.ok()) << part.status.message();
  }
  for (uint32_t m = 0; m < 3; ++m) members.Drop(m);
  members.ExpectClean();
}

}  // namespace
}  // namespace hvd::test
