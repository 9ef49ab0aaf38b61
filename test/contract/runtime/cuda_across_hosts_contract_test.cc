// Process sets over several hosts whose tensors are on GPUs: one communicator of NCCL over all
// members where all can, by the memory of the hosts otherwise; one order on all ranks, whatever
// sets they share; every end is told to all.
#include <gmock/gmock.h>

#include <thread>

#include "test/fakes/cuda/cuda_cases.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct HostsLayout {
  const char* name;
  std::vector<uint32_t> host_of;
  bool nccl = true;
  int slowness = 0;
};

const HostsLayout kHostsLayouts[] = {
    {"TwoAlone", {0, 1}},
    {"TwoByTwo", {0, 0, 1, 1}},
    {"InTurns", {0, 1, 0, 1}},
    {"OneTwoThreeSlowly", {0, 1, 1, 2, 2, 2}, true, 3},
    {"InTurnsWithoutNccl", {0, 1, 0, 1}, false},
    {"OneTwoThreeWithoutNccl", {0, 1, 1, 2, 2, 2}, false},
};

std::ostream& operator<<(std::ostream& out, const HostsLayout& layout) {
  return out << layout.name;
}

CudaMembers::Options OptionsOf(const HostsLayout& layout) {
  return {.members = static_cast<uint32_t>(layout.host_of.size()),
          .nccl = layout.nccl,
          .slowness = layout.slowness,
          .host_of = layout.host_of};
}

class CudaAcrossHosts : public ::testing::TestWithParam<HostsLayout> {
 protected:
  uint32_t size() const { return members_.size(); }
  std::vector<int64_t> Rows(int64_t rows) const { return std::vector<int64_t>(size(), rows); }
  void TearDown() override { members_.ExpectClean(); }

  CudaMembers members_{OptionsOf(GetParam())};
};

TEST_P(CudaAcrossHosts, ReducesByEveryOperation) {
  uint32_t seed = 1;
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt32, DType::kBool}) {
    std::vector<Case> cases;
    for (ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      if (op == ReduceOp::kAverage && !CanAverage(dtype)) continue;
      for (int64_t rows : {0, 5, 7000}) {
        cases.push_back({.op = op, .dtype = dtype, .rows = Rows(rows)});
        cases.push_back({.op = op, .dtype = dtype, .rows = Rows(rows), .in_place = true});
        if (op == ReduceOp::kProduct || HoldsIntegers(dtype)) continue;
        cases.push_back(
            {.op = op, .dtype = dtype, .rows = Rows(rows), .prescale = 2, .postscale = 0.5});
      }
    }
    Check(members_, cases, ++seed);
  }
  EXPECT_EQ(members_.nccl.Count("ncclAllReduce") > 0, GetParam().nccl);
  EXPECT_EQ(members_.nccl.Count("ncclCommInitRankConfig"),
            GetParam().nccl ? static_cast<int>(size()) : 0)
      << "one communicator over all hosts";
  EXPECT_EQ(members_.cuda.Waits(), 0) << "the processor never waits";
}

TEST_P(CudaAcrossHosts, MovesBetweenMembers) {
  uint32_t seed = 100;
  for (int64_t rows : {0, 1, 900}) {
    std::vector<int64_t> unequal, all(size(), 0);
    std::vector<std::vector<int64_t>> splits(size());
    for (uint32_t m = 0; m < size(); ++m) {
      unequal.push_back(m == 1 ? 0 : rows + m);
      for (uint32_t k = 0; k < size(); ++k) {
        splits[m].push_back((m + k) % 3 == 1 ? 0 : rows + k);
        all[m] += splits[m][k];
      }
    }
    std::vector<Case> cases;
    for (bool made : {false, true}) {
      cases.push_back({.collective = Collective::kAllgather, .rows = unequal, .made = made});
      cases.push_back(
          {.collective = Collective::kAlltoall, .rows = all, .splits = splits, .made = made});
      cases.push_back({.collective = Collective::kReducescatter,
                       .op = ReduceOp::kAverage,
                       .rows = Rows(rows),
                       .made = made});
    }
    cases.push_back({.collective = Collective::kBroadcast,
                     .rows = Rows(rows),
                     .root = static_cast<uint32_t>(rows) % size(),
                     .in_place = true});
    Check(members_, cases, ++seed);
  }
}

TEST_P(CudaAcrossHosts, DoesAdasum) {
  // On the hosts the tree has the members of one host after those of another.
  std::vector<uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0U);
  const std::vector<uint32_t>& host_of = GetParam().host_of;
  if (!GetParam().nccl) std::ranges::stable_sort(order, {}, [&](uint32_t m) { return host_of[m]; });
  CheckAdasum(members_, order);
  EXPECT_EQ(members_.nccl.Count("ncclSend") > 0, GetParam().nccl) << "on the GPU";
}

// Whatever ranks submit first, and whatever sets they share, no two wait for each other, and all
// give their GPUs the same calls: each operation has a size of its own.
TEST_P(CudaAcrossHosts, HasOneOrderOverAllSets) {
  std::vector<std::vector<uint32_t>> sets = {{}, {0, size() - 1}};
  if (size() > 3) sets.push_back({0, 1, 3}), sets.push_back({1, 2}), sets.push_back({0, 2, 3});
  for (uint32_t seed = 0; seed < 6; ++seed) {
    std::vector<Case> cases;
    for (int64_t round = 1; round <= 12; ++round) {
      const std::vector<uint32_t>& set = sets[static_cast<size_t>(round) % sets.size()];
      const size_t members = set.empty() ? size() : set.size();
      cases.push_back({.rows = std::vector<int64_t>(members, round * 10), .set = set});
      cases.push_back({.collective = Collective::kAllgather,
                       .rows = std::vector<int64_t>(members, round),
                       .set = set});
    }
    Check(members_, cases, 1000 + seed);
  }
}

TEST_P(CudaAcrossHosts, LeavesOutWhoHasJoined) {
  if (size() < 4) return;
  std::vector<uint8_t> joined(size(), 0);
  joined[size() - 1] = 1;
  std::vector<Case> cases;
  for (ReduceOp op : {ReduceOp::kAverage, ReduceOp::kActiveAverage, ReduceOp::kMax}) {
    for (int64_t rows : {4, 5000})
      cases.push_back({.op = op, .rows = Rows(rows), .joined = joined});
  }
  cases.push_back({.rows = Rows(40)});
  Check(members_, cases, 300);
  Check(members_, {{.rows = Rows(41)}}, 301);
}

TEST_P(CudaAcrossHosts, SaysOnceWhyItIsSlow) {
  Check(members_, std::vector<Case>(3, Case{.rows = Rows(300)}), 7);
  if (GetParam().nccl) {
    EXPECT_THAT(members_.said, IsEmpty());
    return;
  }
  ASSERT_EQ(members_.said.size(), 1U);
  EXPECT_THAT(members_.said[0], HasSubstr("because rank 0 has no usable NCCL; here, NCCL"));
}

INSTANTIATE_TEST_SUITE_P(Layouts, CudaAcrossHosts, ::testing::ValuesIn(kHostsLayouts),
                         [](const auto& given) { return std::string(given.param.name); });

std::vector<CudaOperation> OneOf(CudaMembers& members, const Case& c) {
  std::vector<CudaOperation> operations;
  operations.push_back(Make(members, c));
  return operations;
}

TEST(CudaAcrossHostsMixed, GoesOneWayOnAllHosts) {
  CudaMembers members({.members = 4, .host_of = {0, 0, 1, 1}, .without_nccl = {3}});
  Check(members, {{.rows = {5, 5, 5, 5}}, {.rows = {5, 5}, .set = {0, 2}}}, 1);
  EXPECT_EQ(members.nccl.Count("ncclCommInitRankConfig"), 2) << "of the set that can";
  members.ExpectClean();
}

TEST(CudaAcrossHostsFailures, AreToldToAllHosts) {
  CudaMembers members({.members = 3, .host_of = {0, 0, 1}});
  auto operations = OneOf(members, {.rows = {5, 5, 5}});
  operations[0].parts[1].call.device_index = 77;
  members.Run(operations, 1);
  for (CudaPart& part : operations[0].parts) {
    EXPECT_EQ(part.status.code(), Code::kUnsupported);
    EXPECT_THAT(part.status.message(), HasSubstr("rank 1 cannot take part with a tensor on a GPU"));
  }
  Check(members, {{.rows = {6, 6, 6}}}, 3);  // the next one works
  members.ExpectClean();
}

TEST(CudaAcrossHostsFailures, DisagreementsAreToldToAllHosts) {
  CudaMembers members({.members = 3, .host_of = {0, 0, 1}});
  for (int round = 0; round < 3; ++round) {
    auto operations = OneOf(members, {.rows = {5, 5, 5}});
    operations[0].detail_of = {"a", "a", "b"};
    members.Run(operations, 1);
    for (CudaPart& part : operations[0].parts) EXPECT_EQ(part.status.code(), Code::kMismatch);
  }
  Check(members, {{.rows = {6, 6, 6}}}, 3);
  members.ExpectClean();
}

// For each call of NCCL: its error on one host is a sentence there, and nothing is left behind.
TEST(CudaAcrossHostsFailures, NameTheCallOfNccl) {
  for (const std::string& symbol : FakeNccl::Symbols()) {
    SCOPED_TRACE(symbol);
    CudaMembers members({.members = 2, .host_of = {0, 1}});
    members.nccl.Fail(symbol, kNcclSystemError);
    std::vector<CudaOperation> operations = OneOf(members, {.rows = {4, 4}, .prescale = 0.3});
    Status failure;
    for (int step = 0; step < 2'000'000 && failure.ok() && !operations[0].Done(); ++step) {
      for (uint32_t m = 0; m < 2; ++m) {
        members.Step(operations[0], m);
        if (!operations[0].parts[m].status.ok()) failure = operations[0].parts[m].status;
      }
      std::this_thread::yield();
    }
    if (!failure.ok()) {
      EXPECT_THAT(failure.message(), HasSubstr(symbol));
    }
    // The engine ends the world then.
    for (uint32_t m = 0; m < 2; ++m) {
      members.backend(m).Abort(Aborted("the world has ended"));
      if (operations[0].parts[m].state != nullptr)
        members.backend(m).Abandon(std::move(operations[0].parts[m].state), true);
    }
    members.cuda.Run();
    for (uint32_t m = 0; m < 2; ++m) members.Drop(m);
    EXPECT_THAT(members.nccl.Complaints(), IsEmpty());
    EXPECT_THAT(members.cuda.Complaints(), IsEmpty());
    EXPECT_THAT(members.nccl.Leaks(), IsEmpty());
    EXPECT_THAT(members.cuda.Leaks(), IsEmpty());
  }
}

// An operation that others count on was given up, so those after it can have no turn.
TEST(CudaAcrossHostsFailures, NothingFollowsWhatWasGivenUp) {
  CudaMembers members({.members = 2, .host_of = {0, 1}});
  auto operations = OneOf(members, {.rows = {4, 4}});
  operations.push_back(Make(members, {.rows = {9, 9}}));
  operations[1].name = "y";
  for (int step = 0; step < 2; ++step) {
    for (CudaOperation& operation : operations) members.Step(operation, 0);
  }
  members.backend(0).Abandon(std::move(operations[0].parts[0].state), true);
  operations[0].parts[0].stage = CudaPart::Stage::kDone;
  for (int step = 0; step < 2; ++step) {
    for (CudaOperation& operation : operations) members.Step(operation, 1);
  }
  for (int step = 0; step < 2'000'000 && operations[1].parts[0].status.ok(); ++step) {
    members.Step(operations[1], 0);
    std::this_thread::yield();
  }
  EXPECT_THAT(operations[1].parts[0].status.message(), HasSubstr("was given up"));
  for (CudaOperation& operation : operations) {
    members.backend(1).Abandon(std::move(operation.parts[1].state), true);
  }
  members.cuda.Run();
  members.ExpectClean();
}

}  // namespace
}  // namespace hvd::test
