// Members with tensors on several GPUs, in whatever combination the members come to: each
// operation has a communicator of those GPUs, and its work is done on them; all ends together. The
// fake driver finds memory, streams and events of one device in the context of another.
#include <gmock/gmock.h>

#include <thread>

#include "test/fakes/cuda/cuda_cases.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;

struct DevicesLayout {
  const char* name;
  std::vector<uint32_t> host_of;
  bool nccl = true;
  int slowness = 0;
};

const DevicesLayout kDevicesLayouts[] = {
    {"OneHost", {}},
    {"OneHostSlowly", {}, true, 3},
    {"OneHostWithoutNccl", {}, false},
    {"TwoHosts", {0, 1, 1}},
    {"TwoHostsSlowly", {0, 1, 1}, true, 3},
    {"TwoHostsWithoutNccl", {0, 0, 1}, false},
};

std::ostream& operator<<(std::ostream& out, const DevicesLayout& layout) {
  return out << layout.name;
}

// Three members; the first two devices are meant for the first one, and so on.
class CudaSeveralDevices : public ::testing::TestWithParam<DevicesLayout> {
 protected:
  void TearDown() override { members_.ExpectClean(); }

  CudaMembers members_{{.members = 3,
                        .devices_of_each = 2,
                        .nccl = GetParam().nccl,
                        .slowness = GetParam().slowness,
                        .host_of = GetParam().host_of}};
};

// No two members share a device in any of them.
const std::vector<std::vector<int>> kCombinations = {{0, 2, 4}, {1, 3, 5}, {0, 3, 4}, {2, 0, 5}};

TEST_P(CudaSeveralDevices, EachOperationIsDoneOnThoseOfItsTensors) {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    std::vector<Case> cases;
    for (int round = 0; round < 4; ++round) {
      for (const std::vector<int>& devices : kCombinations) {
        // Alike but for the devices, so that nothing else keeps them from being one batch.
        cases.push_back({.rows = {40, 40, 40}, .devices = devices});
        if (round == 0) continue;
        cases.push_back({.op = ReduceOp::kAverage,
                         .rows = {9000, 9000, 9000},
                         .prescale = 0.3,
                         .devices = devices});
        cases.push_back({.collective = Collective::kAllgather,
                         .rows = {3, 0, 5},
                         .made = true,
                         .devices = devices});
        cases.push_back({.collective = Collective::kAlltoall,
                         .rows = {3, 4, 5},
                         .splits = {{1, 1, 1}, {2, 0, 2}, {0, 4, 1}},
                         .made = true,
                         .devices = devices});
        cases.push_back({.collective = Collective::kReducescatter,
                         .op = ReduceOp::kAverage,
                         .rows = {8, 8, 8},
                         .in_place = true,
                         .devices = devices});
        cases.push_back({.collective = Collective::kBroadcast,
                         .rows = {6, 6, 6},
                         .root = 1,
                         .in_place = true,
                         .devices = devices});
      }
    }
    Check(members_, cases, seed);
  }
  const int communicators = GetParam().nccl ? 3 * static_cast<int>(kCombinations.size()) : 0;
  EXPECT_EQ(members_.nccl.Count("ncclCommInitRankConfig"), communicators);
}

TEST_P(CudaSeveralDevices, SetsHaveTheirOwn) {
  std::vector<Case> cases;
  for (int first : {0, 1}) {
    cases.push_back({.rows = {7, 7, 7}, .devices = {first, 2 + first, 4 + first}});
    cases.push_back({.rows = {7, 7}, .set = {0, 1}, .devices = {first, 3 - first}});
    cases.push_back({.rows = {7, 7}, .set = {1, 2}, .devices = {2 + first, 5 - first}});
    cases.push_back({.rows = {7}, .set = {2}, .devices = {4 + first}});
  }
  for (uint32_t seed = 0; seed < 4; ++seed) Check(members_, cases, seed);
}

INSTANTIATE_TEST_SUITE_P(Layouts, CudaSeveralDevices, ::testing::ValuesIn(kDevicesLayouts),
                         [](const auto& given) { return std::string(given.param.name); });

// Tensors that meet on a device are staged, and only these.
TEST(CudaDevices, ThoseThatMeetOnOneAreStaged) {
  CudaMembers members({.members = 2, .devices_of_each = 2});
  Check(members, {{.rows = {7, 7}, .devices = {0, 2}}, {.rows = {7, 7}, .devices = {2, 2}}}, 1);
  EXPECT_EQ(members.nccl.Count("ncclCommInitRankConfig"), 2);
  ASSERT_EQ(members.said.size(), 1U);
  EXPECT_THAT(members.said[0], HasSubstr("because ranks 1 and 3 are on one GPU"));
  members.ExpectClean();
}

// One that a member has not is refused by all, in its words, and the others go on.
TEST(CudaDevices, OneThatThereIsNotIsASentenceForAll) {
  for (const std::vector<uint32_t>& host_of :
       {std::vector<uint32_t>{}, std::vector<uint32_t>{0, 1}}) {
    CudaMembers members({.members = 2, .devices_of_each = 2, .host_of = host_of});
    std::vector<CudaOperation> operations;
    operations.push_back(Make(members, {.rows = {7, 7}, .devices = {1, 3}}));
    operations[0].parts[1].call.device_index = 4;
    members.Run(operations, 1);
    for (CudaPart& part : operations[0].parts) {
      EXPECT_EQ(part.status.code(), Code::kUnsupported);
      EXPECT_THAT(part.status.message(), HasSubstr("cannot take part with a tensor on a GPU: "));
    }
    Check(members, {{.rows = {7, 7}, .devices = {1, 3}}, {.rows = {7, 7}}}, 2);
    members.ExpectClean();
  }
}

// A rank is dead, and two devices of a member wait for it.
TEST(CudaDevices, AreLeftTogether) {
  CudaMembers members({.members = 2, .devices_of_each = 2});
  members.nccl.aborts_wait = true;
  const std::vector<Case> cases = {{.rows = {3, 3}, .devices = {0, 2}},
                                   {.rows = {3, 3}, .devices = {1, 3}}};
  Check(members, cases, 1);
  std::vector<CudaOperation> operations;
  operations.push_back(Make(members, cases[0]));
  operations.push_back(Make(members, cases[1]));
  for (CudaOperation& operation : operations) {
    for (uint32_t m = 0; m < 2; ++m) members.Step(operation, m);
    members.Step(operation, 1);  // has no place in the order yet
    for (int step = 0; step < 2; ++step) members.Step(operation, 0);
    EXPECT_EQ(operation.parts[0].stage, CudaPart::Stage::kDone) << "given to its GPU";
  }
  for (uint32_t m = 0; m < 2; ++m) {
    std::thread([&] { members.backend(m).Abort(Aborted("rank 3 died on host a")); }).join();
  }
  for (CudaOperation& operation : operations) {
    members.Step(operation, 1);
    EXPECT_THAT(operation.parts[1].status.message(), HasSubstr("rank 3 died on host a"));
  }
  members.cuda.Run();
  members.ExpectClean();
}

}  // namespace
}  // namespace hvd::test
