// The duties of CudaBackend to the engine, over a fake driver and a fake NCCL: the right result of
// every collective by NCCL and by the host, in whatever order members and GPUs go on; the processor
// never waits; errors are told to all; nothing is left.
#include <gmock/gmock.h>

#include <thread>

#include "test/fakes/cuda/cuda_cases.h"

namespace hvd::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum class Way { kNccl, kSlowNccl, kWithoutNccl, kOneGpu };

std::string NameOf(Way way) {
  constexpr const char* kNames[] = {"Nccl", "SlowNccl", "WithoutNccl", "OneGpu"};
  return kNames[static_cast<int>(way)];
}

class CudaBackendContract : public ::testing::TestWithParam<std::tuple<Way, uint32_t>> {
 protected:
  Way way() const { return std::get<0>(GetParam()); }
  uint32_t size() const { return std::get<1>(GetParam()); }
  bool by_nccl() const { return way() == Way::kNccl || way() == Way::kSlowNccl; }
  std::vector<int64_t> Rows(int64_t rows) const { return std::vector<int64_t>(size(), rows); }
  void TearDown() override {
    for (uint32_t m = 0; m < size(); ++m) CloseTogether();
    members_.ExpectClean();
  }
  void CloseTogether() {
    for (uint32_t m = 0; m < size(); ++m) members_.Drop(m);
  }

  CudaMembers members_{{.members = std::get<1>(GetParam()),
                        .nccl = std::get<0>(GetParam()) != Way::kWithoutNccl,
                        .one_gpu = std::get<0>(GetParam()) == Way::kOneGpu,
                        .slowness = std::get<0>(GetParam()) == Way::kSlowNccl ? 3 : 0}};
};

TEST_P(CudaBackendContract, ReducesEveryTypeByEveryOperation) {
  uint32_t seed = 1;
  for (int number = 0; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    std::vector<Case> cases;
    for (ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      if (op == ReduceOp::kAverage && !CanAverage(dtype)) continue;
      for (int64_t rows : {0, 5, 700}) {
        cases.push_back({.op = op, .dtype = dtype, .rows = Rows(rows)});
        cases.push_back({.op = op, .dtype = dtype, .rows = Rows(rows), .in_place = true});
        if (op == ReduceOp::kProduct) continue;
        cases.push_back(
            {.op = op, .dtype = dtype, .rows = Rows(rows), .prescale = 2, .postscale = 0.5});
      }
    }
    Check(members_, cases, ++seed);
  }
  EXPECT_EQ(members_.nccl.Count("ncclAllReduce") > 0, by_nccl() && size() > 1);
}

TEST_P(CudaBackendContract, MovesBetweenMembers) {
  uint32_t seed = 100;
  for (int64_t rows : {0, 1, 9, 6000}) {
    std::vector<int64_t> unequal, all(size(), 0);
    std::vector<std::vector<int64_t>> splits(size()), equal(size());
    for (uint32_t m = 0; m < size(); ++m) {
      unequal.push_back(m == 1 ? 0 : rows + m);
      for (uint32_t k = 0; k < size(); ++k) {
        splits[m].push_back((m + k) % 3 == 1 ? 0 : rows + k);
        equal[m].push_back(rows);
        all[m] += splits[m][k];
      }
    }
    std::vector<Case> cases;
    for (bool made : {false, true}) {
      cases.push_back({.collective = Collective::kAllgather, .rows = Rows(rows), .made = made});
      cases.push_back({.collective = Collective::kAllgather,
                       .dtype = DType::kInt16,
                       .rows = unequal,
                       .made = made});
      cases.push_back(
          {.collective = Collective::kAlltoall, .rows = all, .splits = splits, .made = made});
      cases.push_back({.collective = Collective::kAlltoall,
                       .dtype = DType::kBool,
                       .rows = Rows(rows * size()),
                       .splits = equal,
                       .in_place = !made,
                       .made = made});
      for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
        cases.push_back({.collective = Collective::kReducescatter,
                         .op = op,
                         .dtype = made ? DType::kBfloat16 : DType::kFloat64,
                         .rows = Rows(rows),
                         .in_place = !made,
                         .made = made});
        cases.push_back({.collective = Collective::kReducescatter,
                         .op = op,
                         .dtype = DType::kFloat16,
                         .rows = Rows(rows),
                         .prescale = 0.1 * 5,
                         .postscale = 2,
                         .made = made});
      }
    }
    for (bool in_place : {false, true}) {
      cases.push_back({.collective = Collective::kBroadcast,
                       .rows = Rows(rows),
                       .root = static_cast<uint32_t>(rows) % size(),
                       .in_place = in_place});
    }
    Check(members_, cases, ++seed);
  }
}

TEST_P(CudaBackendContract, LeavesOutWhoHasJoined) {
  if (size() < 2) return;
  std::vector<uint8_t> joined(size(), 0);
  joined[size() / 2] = 1;
  std::vector<Case> cases;
  for (ReduceOp op : {ReduceOp::kAverage, ReduceOp::kActiveAverage, ReduceOp::kMax}) {
    for (int64_t rows : {4, 5000})
      cases.push_back({.op = op, .rows = Rows(rows), .joined = joined});
  }
  cases.push_back({.rows = Rows(40)});
  Check(members_, cases, 300);
}

TEST_P(CudaBackendContract, DoesAdasum) {
  CheckAdasum(members_);
  EXPECT_EQ(members_.nccl.Count("ncclSend") > 0, by_nccl() && size() > 1) << "on the GPU";
  EXPECT_EQ(members_.cuda.Waits(), 0) << "the processor never waits";
}

TEST_P(CudaBackendContract, NeverMakesTheProcessorWait) {
  Check(members_, std::vector<Case>(20, Case{.rows = Rows(300)}), 6);
  EXPECT_EQ(members_.cuda.Waits(), 0);
}

// A member that is not concerned says nothing.
TEST_P(CudaBackendContract, SaysOnceWhyItIsSlow) {
  Check(members_, std::vector<Case>(3, Case{.rows = Rows(300)}), 7);
  if (by_nccl() || size() == 1) {
    EXPECT_THAT(members_.said, IsEmpty());
    return;
  }
  ASSERT_EQ(members_.said.size(), 1U);
  EXPECT_THAT(members_.said[0],
              HasSubstr(way() == Way::kOneGpu ? "because ranks 1 and 3 are on one GPU"
                                              : "because rank 1 has no usable NCCL; here, NCCL"));
}

INSTANTIATE_TEST_SUITE_P(
    Ways, CudaBackendContract,
    ::testing::Values(std::tuple(Way::kNccl, 1U), std::tuple(Way::kNccl, 2U),
                      std::tuple(Way::kNccl, 5U), std::tuple(Way::kSlowNccl, 3U),
                      std::tuple(Way::kWithoutNccl, 2U), std::tuple(Way::kWithoutNccl, 5U),
                      std::tuple(Way::kOneGpu, 3U)),
    [](const auto& given) {
      return NameOf(std::get<0>(given.param)) + "With" + std::to_string(std::get<1>(given.param));
    });

// ---- batches

std::vector<CudaOperation> Operations(CudaMembers& members, size_t count, int64_t rows) {
  std::vector<CudaOperation> operations;
  operations.reserve(count);
  for (size_t k = 0; k < count; ++k)
    operations.push_back(Make(members, {.rows = std::vector<int64_t>(members.size(), rows)}));
  return operations;
}

// The same step of all members of all operations.
void StepAll(CudaMembers& members, std::vector<CudaOperation>& operations) {
  for (CudaOperation& operation : operations) {
    for (uint32_t m = 0; m < members.size(); ++m) members.Step(operation, m);
  }
}

TEST(CudaBatches, AreOneGroupOfWhatIsReady) {
  CudaMembers members({.members = 2});
  auto small = Operations(members, 100, 20);
  auto large = Operations(members, 3, 10'000);
  for (auto& operation : large) small.push_back(std::move(operation));
  for (int step = 0; step < 30; ++step) StepAll(members, small);
  EXPECT_TRUE(members.cuda.Run());
  for (CudaOperation& operation : small) {
    for (uint32_t m = 0; m < 2; ++m) EXPECT_EQ(operation.parts[m].stage, CudaPart::Stage::kDone);
  }
  // The small ones packed, the others as they are; on each member.
  EXPECT_EQ(members.nccl.Count("ncclAllReduce"), 2 * 4);
  EXPECT_EQ(members.nccl.Count("ncclGroupStart"), 2);
  for (uint32_t m = 0; m < 2; ++m) members.Drop(m);
  members.ExpectClean();
}

// NCCL's own memory, registered once, and freed when NCCL knows it no more.
TEST(CudaBatches, ArePackedInRegisteredMemoryWhereThatIsWanted) {
  for (int version : {21403, 22809}) {
    CudaMembers members({.members = 2, .registers_buffers = true});
    members.nccl.version = version;
    for (uint32_t m = 0; m < 2; ++m) members.Open(m);
    auto operations = Operations(members, 30, 20);
    for (int round = 0; round < 3; ++round) {
      Check(members, std::vector<Case>(30, Case{.rows = {20, 20}}), 1);
      for (int step = 0; step < 30; ++step) StepAll(members, operations);
      EXPECT_TRUE(members.cuda.Run());
      operations = Operations(members, 30, 20);
    }
    const int registered = version == 21403 ? 0 : 2;
    EXPECT_EQ(members.nccl.Count("ncclCommRegister"), registered) << "once on each member";
    EXPECT_EQ(members.nccl.Count("ncclMemAlloc"), registered);
    for (uint32_t m = 0; m < 2; ++m) members.Drop(m);
    EXPECT_EQ(members.nccl.Count("ncclMemFree"), registered);
    members.ExpectClean();
  }
}

TEST(CudaBatches, NameTheCallThatRegisters) {
  for (const char* symbol : {"ncclMemAlloc", "ncclCommRegister"}) {
    CudaMembers members({.members = 2, .registers_buffers = true});
    members.nccl.Fail(symbol, kNcclSystemError);
    auto operations = Operations(members, 3, 20);
    for (int step = 0; step < 30; ++step) StepAll(members, operations);
    EXPECT_THAT(operations[0].parts[0].status.message(), HasSubstr(symbol));
    for (uint32_t m = 0; m < 2; ++m) members.backend(m).Abort(Aborted("the world has ended"));
    members.cuda.Run();
    for (uint32_t m = 0; m < 2; ++m) members.Drop(m);
    members.ExpectClean();
  }
}

// A set's communicator is made without the other ranks, which have one of the world, too, and do
// nothing meanwhile.
TEST(CudaSets, ASetNeedsItsMembersOnly) {
  CudaMembers members({.members = 4});
  Check(members, {{.rows = {3, 3, 3, 3}}}, 1);
  for (const std::vector<uint32_t>& set : {std::vector<uint32_t>{1, 3}, {0, 2}, {1, 2, 3}}) {
    Check(members, {{.rows = std::vector<int64_t>(set.size(), 3), .set = set}}, 2);
  }
  EXPECT_EQ(members.nccl.Count("ncclCommInitRankConfig"), 4 + 2 + 2 + 3);
  members.ExpectClean();
}

// ---- ends and failures

// An operation that only the GPU is missing for is not done, and fails when the communicator does.
TEST(CudaBackendEnds, WaitsForTheGpuWhereThatIsAsked) {
  CudaMembers members({.members = 2, .waits_for_gpu = true});
  Check(members, {{.rows = {300, 300}}, {.rows = {7, 7}}}, 1);
  auto operations = Operations(members, 1, 300);
  for (int step = 0; step < 10; ++step) StepAll(members, operations);
  for (CudaPart& part : operations[0].parts) EXPECT_EQ(part.stage, CudaPart::Stage::kStarted);
  for (uint32_t m = 0; m < 2; ++m) members.backend(m).Abort(Aborted("rank 9 died on host a"));
  StepAll(members, operations);
  for (CudaPart& part : operations[0].parts)
    EXPECT_THAT(part.status.message(), HasSubstr("rank 9 died on host a"));
  members.cuda.Run();
  members.ExpectClean();
}

TEST(CudaBackendEnds, ClosesItsCommunicatorsTogether) {
  CudaMembers members({.members = 2});
  Check(members, {{.rows = {300, 300}}}, 1);
  EXPECT_TRUE(members.backend(0).UsesNccl());
  members.Drop(0);  // without a goodbye: aborted
  EXPECT_EQ(members.nccl.Count("ncclCommAbort"), 1);
  members.Drop(1);
  members.ExpectClean();
}

TEST(CudaBackendEnds, ServesTheNextWorldAfterAnAbort) {
  CudaMembers members({.members = 2});
  for (uint32_t world = 0; world < 3; ++world) {
    Check(members, {{.rows = {300, 300}}, {.rows = {7, 7}}}, world);
    EXPECT_EQ(members.nccl.Count("ncclCommInitRankConfig"), static_cast<int>(2 * (world + 1)));
    for (uint32_t m = 0; m < 2; ++m) members.backend(m).Abort(Aborted("rank 9 died"));
    EXPECT_EQ(members.nccl.Count("ncclCommAbort"), static_cast<int>(2 * (world + 1)));
    for (uint32_t m = 0; m < 2; ++m) members.Drop(m);
    members.store = std::make_unique<MemoryKvStore>();  // that of the next generation
    for (uint32_t m = 0; m < 2; ++m) members.Open(m);
  }
  members.ExpectClean();
}

// A rank is dead: the communicators are aborted from another thread, and what waits fails with the
// reason.
TEST(CudaBackendEnds, FailsWhatWaitsForADeadRank) {
  CudaMembers members({.members = 2});
  Check(members, {{.rows = {300, 300}}}, 1);
  auto operations = Operations(members, 1, 300);
  for (int step = 0; step < 2; ++step)
    members.Step(operations[0], 0), members.Step(operations[0], 1);
  members.Step(operations[0], 1);  // has no place in the order yet
  std::thread([&] { members.backend(1).Abort(Aborted("rank 1 died on host a")); }).join();
  members.Step(operations[0], 0);  // is in the stream and waits there
  members.backend(0).Abort(Aborted("rank 1 died on host a"));
  members.Step(operations[0], 1);
  EXPECT_THAT(operations[0].parts[1].status.message(), HasSubstr("rank 1 died on host a"));
  members.cuda.Run();
  members.ExpectClean();
}

// The world, and a set of its first two members, have kernels on the GPU of member 0 that wait for
// a rank that is dead.
std::vector<CudaOperation> StuckOnTwoCommunicators(CudaMembers& members) {
  members.nccl.aborts_wait = true;
  Check(members, {{.rows = {3, 3, 3}}, {.rows = {3, 3}, .set = {0, 1}}}, 1);
  std::vector<CudaOperation> operations;
  operations.push_back(Make(members, {.rows = {3, 3, 3}}));
  operations.push_back(Make(members, {.rows = {3, 3}, .set = {0, 1}}));
  for (CudaOperation& operation : operations) {
    for (uint32_t m = 0; m < 3; ++m) {
      if (operation.Has(m)) members.Step(operation, m);
    }
    for (int step = 0; step < 2; ++step) members.Step(operation, 0);
    EXPECT_EQ(operation.parts[0].stage, CudaPart::Stage::kDone) << "given to the GPU";
  }
  return operations;
}

void AbortAll(CudaMembers& members, std::vector<CudaOperation>& operations) {
  for (uint32_t m = 0; m < members.size(); ++m) {
    members.backend(m).Abort(Aborted("rank 5 died on host a"));
    for (CudaOperation& operation : operations) {
      if (operation.parts[m].state != nullptr)
        members.backend(m).Abandon(std::move(operation.parts[m].state), true);
    }
  }
  members.cuda.Run();
  members.ExpectClean();
}

TEST(CudaBackendEnds, AbortsAllCommunicatorsTogether) {
  CudaMembers members({.members = 3});
  auto operations = StuckOnTwoCommunicators(members);
  members.backend(0).Abort(Aborted("rank 5 died on host a"));
  EXPECT_EQ(members.nccl.Count("ncclCommAbort"), 2);
  members.backend(0).Abort(Aborted("again"));
  EXPECT_EQ(members.nccl.Count("ncclCommAbort"), 2);
  AbortAll(members, operations);
}

// No thread can be taken back from NCCL, so the process ends; here, the aborts return instead.
TEST(CudaBackendEnds, AnAbortThatDoesNotReturnEndsTheProcess) {
  CudaMembers members({.members = 2, .abort_limit = std::chrono::milliseconds(20)});
  Check(members, {{.rows = {3, 3}}}, 1);
  members.nccl.aborts_hang = true;
  members.backend(1).Abort(Aborted("rank 0 died on host a"));
  EXPECT_THAT(members.ended, ElementsAre(AllOf(HasSubstr("rank 3: NCCL has not come back"),
                                               HasSubstr("rank 0 died on host a"))));
  members.backend(0).Abort(Aborted("rank 1 died on host a"));
  EXPECT_EQ(members.ended.size(), 1U) << "these returned";
  members.cuda.Run();
  members.ExpectClean();
}

// NCCL tells of the death first, by one of the communicators.
TEST(CudaBackendEnds, AnErrorOfOneCommunicatorEndsAll) {
  for (size_t size : {3, 2}) {
    CudaMembers members({.members = 3});
    auto operations = StuckOnTwoCommunicators(members);
    for (const auto& comm : members.nccl.comms) {
      if (comm->rank == 0 && comm->world->members.size() == size)
        comm->async_error = kNcclRemoteError;
    }
    members.backend(0).Watch();
    EXPECT_EQ(members.nccl.Count("ncclCommAbort"), 2);
    ASSERT_EQ(members.said.size(), 1U);
    EXPECT_THAT(members.said[0], HasSubstr("ncclCommGetAsyncError"));
    AbortAll(members, operations);
  }
}

// Nobody says goodbye.
TEST(CudaBackendEnds, DropsAllCommunicatorsTogether) {
  CudaMembers members({.members = 3});
  auto operations = StuckOnTwoCommunicators(members);
  members.Drop(0);
  EXPECT_EQ(members.nccl.Count("ncclCommAbort"), 2);
  for (CudaOperation& operation : operations) {
    for (uint32_t m = 1; m < 3; ++m) {
      if (operation.parts[m].state != nullptr)
        members.backend(m).Abandon(std::move(operation.parts[m].state), true);
    }
  }
  members.cuda.Run();
  members.ExpectClean();
}

TEST(CudaBackendEnds, TellsErrorsThatComeLater) {
  CudaMembers members({.members = 2});
  Check(members, {{.rows = {300, 300}}}, 1);
  members.backend(0).Watch();
  EXPECT_THAT(members.said, IsEmpty());
  members.nccl.comms[0]->async_error = kNcclRemoteError;
  for (int i = 0; i < 2; ++i) members.backend(0).Watch();
  ASSERT_EQ(members.said.size(), 1U);
  EXPECT_THAT(members.said[0], HasSubstr("ncclCommGetAsyncError"));
  EXPECT_EQ(members.nccl.Count("ncclCommAbort"), 1);
  auto operations = Operations(members, 1, 5);
  for (int step = 0; step < 3; ++step) StepAll(members, operations);
  EXPECT_FALSE(operations[0].parts[0].status.ok());
  members.backend(1).Abort(operations[0].parts[0].status);
  members.cuda.Run();
  members.ExpectClean();
}

TEST(CudaBackendFailures, AreToldToAllMembers) {
  CudaMembers members({.members = 3});
  auto operations = Operations(members, 1, 5);
  operations[0].parts[1].call.device_index = 77;
  for (int step = 0; step < 2; ++step) StepAll(members, operations);
  for (CudaPart& part : operations[0].parts) {
    EXPECT_EQ(part.status.code(), Code::kUnsupported);
    EXPECT_THAT(part.status.message(), HasSubstr("rank 3 cannot take part with a tensor on a GPU"));
  }
  members.cuda.Run();
  Check(members, {{.rows = {5, 5, 5}}}, 3);  // the next one works
  members.ExpectClean();
}

// A replay of the graph would do the work of one rank alone.
TEST(CudaBackendFailures, ACaptureOfTheProgramIsRefusedOnAllMembers) {
  CudaMembers members({.members = 3});
  auto operations = Operations(members, 1, 5);
  auto* stream = static_cast<CuStream>(operations[0].parts[1].call.stream);
  stream->captured = true;
  for (int step = 0; step < 2; ++step) StepAll(members, operations);
  for (CudaPart& part : operations[0].parts) {
    EXPECT_EQ(part.status.code(), Code::kUnsupported);
    EXPECT_THAT(part.status.message(), HasSubstr("rank 3 cannot take part with a tensor on a GPU"));
    EXPECT_THAT(part.status.message(), HasSubstr("is being captured for a CUDA graph"));
  }
  stream->captured = false;
  members.cuda.Run();
  Check(members, {{.rows = {5, 5, 5}}}, 3);  // outside of the graph
  members.ExpectClean();
}

// For each call of NCCL: its error ends the operation with a sentence that names it, and nothing is
// left behind.
TEST(CudaBackendFailures, NameTheCallOfNccl) {
  for (const std::string& symbol : FakeNccl::Symbols()) {
    SCOPED_TRACE(symbol);
    CudaMembers members({.members = 2});
    members.nccl.Fail(symbol, kNcclSystemError);
    std::vector<CudaOperation> operations;
    for (Collective collective :
         {Collective::kAllreduce, Collective::kBroadcast, Collective::kAllgather,
          Collective::kReducescatter, Collective::kAlltoall}) {
      operations.push_back(Make(
          members,
          {.collective = collective, .rows = {4, 4}, .splits = {{3, 1}, {1, 3}}, .prescale = 0.3}));
    }
    std::vector<Status> failures;
    for (int step = 0; step < 12 && failures.empty(); ++step) {
      StepAll(members, operations);
      for (CudaOperation& operation : operations) {
        for (CudaPart& part : operation.parts)
          if (!part.status.ok()) failures.push_back(part.status);
      }
    }
    const bool called = members.nccl.Count(symbol) > 0 || !failures.empty();
    if (called && !failures.empty()) {
      EXPECT_THAT(failures[0].message(), HasSubstr(symbol));
    }
    // The engine ends the world then.
    for (uint32_t m = 0; m < 2; ++m) members.backend(m).Abort(Aborted("the world has ended"));
    for (CudaOperation& operation : operations) {
      for (uint32_t m = 0; m < 2; ++m) {
        if (operation.parts[m].state != nullptr)
          members.backend(m).Abandon(std::move(operation.parts[m].state), true);
      }
    }
    members.cuda.Run();
    for (uint32_t m = 0; m < 2; ++m) members.Drop(m);
    EXPECT_THAT(members.nccl.Complaints(), IsEmpty());
    EXPECT_THAT(members.cuda.Complaints(), IsEmpty());
    EXPECT_THAT(members.nccl.Leaks(), IsEmpty());
    EXPECT_THAT(members.cuda.Leaks(), IsEmpty());
  }
}

// Member 1 never comes to NCCL.
TEST(CudaBackendFailures, AStartHasALimit) {
  CudaMembers members({.members = 2, .start_limit = std::chrono::seconds(5)});
  auto operations = Operations(members, 1, 5);
  for (int step = 0; step < 2; ++step) StepAll(members, operations);
  for (int step = 0; step < 5; ++step) members.Step(operations[0], 0);
  EXPECT_TRUE(operations[0].parts[0].status.ok());
  EXPECT_TRUE(
      members.backend(0).Needs(operations[0].parts[0].call, operations[0].parts[0].state.get(), 3));
  members.clock.Advance(std::chrono::seconds(6));
  members.Step(operations[0], 0);
  EXPECT_THAT(operations[0].parts[0].status.message(),
              HasSubstr("ncclCommInitRankConfig has not ended within 5.0 s"));
  members.backend(1).Abandon(std::move(operations[0].parts[1].state), true);
  members.cuda.Run();
  members.ExpectClean();
}

}  // namespace
}  // namespace hvd::test
