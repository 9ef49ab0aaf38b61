// Batches that come again as CUDA graphs: the same results, launched by all members alike or by
// none, and nothing is left that NCCL would wait for.
#include <gmock/gmock.h>

#include <thread>

#include "runtime/device/cuda/device_memory.h"
#include "test/fakes/cuda/cuda_cases.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kGraphMembers = 3;

// The GPUs work while time passes.
class PassingClock final : public Clock {
 public:
  explicit PassingClock(FakeCuda& cuda) : cuda_(cuda) {}
  TimePoint Now() const override {
    cuda_.Run();
    return now_ += std::chrono::milliseconds(100);
  }

 private:
  FakeCuda& cuda_;
  mutable TimePoint now_;
};

class CudaGraphs : public ::testing::Test {
 protected:
  explicit CudaGraphs(CudaMembers::Options options = Options()) : members_(options) {
    for (int64_t rows : {20, 5, 300}) {
      const Case c{.op = ReduceOp::kSum, .rows = {rows, rows, rows}, .prescale = 0.5};
      operations_.push_back(Make(members_, c));
      operations_.back().name = "operation " + std::to_string(rows);
    }
  }
  static CudaMembers::Options Options() {
    return {.members = kGraphMembers, .is_world = true, .keeps_graphs = {0, 1, 2}};
  }

  // The same calls with the same buffers, and other data in them.
  void Again() {
    ++round_;
    for (CudaOperation& operation : operations_) {
      for (uint32_t m = 0; m < kGraphMembers; ++m) {
        CudaPart& part = operation.parts[m];
        part.stage = CudaPart::Stage::kNew;
        part.status = Status::Ok();
        part.result = {};
        part.output.clear();
        for (size_t i = 0; i < part.call.count; ++i)
          Write(DType::kFloat32, 2 * (round_ + m), part.input.data() + i * sizeof(float));
      }
    }
  }
  void Step() {
    for (CudaOperation& operation : operations_) {
      for (uint32_t m = 0; m < kGraphMembers; ++m) members_.Step(operation, m);
    }
  }
  // All members are ready at once, so all is one batch.
  void RunAsOneBatch() {
    Again();
    for (int step = 0; step < 30; ++step) Step();
    EXPECT_TRUE(members_.cuda.Run());
    CheckResults();
  }
  void CheckResults() {
    for (CudaOperation& operation : operations_) {
      for (CudaPart& part : operation.parts) {
        ASSERT_TRUE(part.status.ok()) << part.status.message();
        ASSERT_EQ(part.output.size(), part.call.bytes());
        for (size_t i = 0; i < part.call.count; ++i) {
          ASSERT_EQ(Read(DType::kFloat32, part.output.data() + i * sizeof(float)),
                    kGraphMembers * round_ + 3)
              << "round " << round_;
        }
      }
    }
  }
  int Count(const char* symbol) const { return members_.cuda.Count(symbol); }
  void End() {
    for (uint32_t m = 0; m < kGraphMembers; ++m) members_.Drop(m);
    members_.ExpectClean();
  }

  CudaMembers members_;
  std::vector<CudaOperation> operations_;
  uint32_t round_ = 0;
};

TEST_F(CudaGraphs, AreLaunchedFromTheSecondTimeOn) {
  for (int round = 0; round < 6; ++round) RunAsOneBatch();
  EXPECT_EQ(Count("cuStreamBeginCapture_v2"), 3) << "once on each member";
  EXPECT_EQ(Count("cuGraphLaunch"), 3 * 5);
  EXPECT_EQ(members_.nccl.Count("ncclAllReduce"), 3 * 2) << "as it is, and for the graph";
  EXPECT_EQ(members_.cuda.Waits(), 0);
  End();
}

TEST_F(CudaGraphs, EndBeforeTheirCommunicatorIsClosed) {
  const PassingClock clock(members_.cuda);
  members_.time = &clock;
  for (uint32_t m = 0; m < kGraphMembers; ++m) members_.Open(m);
  for (int round = 0; round < 3; ++round) RunAsOneBatch();
  // One after the other: each waits for the rest until its limit.
  for (uint32_t m = 0; m < kGraphMembers; ++m) members_.backend(m).Leave();
  EXPECT_EQ(Count("cuGraphExecDestroy"), 3);
  EXPECT_EQ(members_.nccl.Count("ncclCommFinalize"), 3);
  End();
}

// One member has other memory: its call has another number, so all give the batch as it is.
TEST_F(CudaGraphs, AreOfTheSameBuffersOnAllMembers) {
  for (int round = 0; round < 3; ++round) RunAsOneBatch();
  CudaPart& part = operations_[1].parts[2];
  members_.Give(2, members_.OwnDevice(2), &part, part.input, part.call.bytes(), false, false);
  RunAsOneBatch();
  EXPECT_EQ(members_.nccl.Count("ncclAllReduce"), 3 * 3);
  EXPECT_EQ(Count("cuGraphLaunch"), 3 * 2);
  RunAsOneBatch();
  RunAsOneBatch();
  EXPECT_EQ(Count("cuStreamBeginCapture_v2"), 3 * 2);
  EXPECT_EQ(Count("cuGraphLaunch"), 3 * 4);
  End();
}

TEST_F(CudaGraphs, AreOfTheSameSize) {
  for (int round = 0; round < 3; ++round) RunAsOneBatch();
  for (CudaPart& part : operations_[0].parts) part.call.count -= 3, part.call.rows -= 1;
  RunAsOneBatch();
  EXPECT_EQ(Count("cuGraphLaunch"), 3 * 2);
  End();
}

// Whatever becomes ready when, and in whatever batches: the fake complains where members differ.
TEST_F(CudaGraphs, AreChosenAlikeInEveryOrder) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Again();
    members_.Run(operations_, seed);
    CheckResults();
  }
  EXPECT_GT(Count("cuGraphLaunch"), 3 * 10);
  End();
}

class CudaGraphsSlowly : public CudaGraphs {
 protected:
  CudaGraphsSlowly() : CudaGraphs(Slow()) {}
  static CudaMembers::Options Slow() {
    CudaMembers::Options options = Options();
    options.slowness = 3;
    return options;
  }
  void ContextOf(int device, const std::function<void()>& use) {
    const CudaDriver driver = members_.cuda.Driver();
    CuContext context = nullptr;
    driver.primary_ctx_retain(&context, 100 + device);
    driver.ctx_push_current(context);
    use();
    driver.ctx_pop_current(&context);
    driver.primary_ctx_release(100 + device);
  }
  // Until all members capture.
  void RunIntoCapture() {
    RunAsOneBatch();
    Again();
    for (int step = 0; step < 10 && Count("cuStreamBeginCapture_v2") < 3; ++step) Step();
    ASSERT_TRUE(members_.cuda.Captures());
  }
};

// NCCL gives its calls in its own time, and the capture stays open meanwhile.
TEST_F(CudaGraphsSlowly, WaitForNccl) {
  for (int round = 0; round < 4; ++round) RunAsOneBatch();
  EXPECT_EQ(Count("cuGraphLaunch"), 3 * 3);
  End();
}

// Memory that is freed during a capture which never ends is free when the world has ended.
TEST_F(CudaGraphsSlowly, AreAbortedHalfWay) {
  RunIntoCapture();
  CuAddress memory = 0;
  ContextOf(0, [&] { members_.cuda.Driver().mem_alloc(&memory, 8); });
  FreeDeviceMemory(members_.cuda.Driver(), 0, memory);
  EXPECT_EQ(members_.cuda.Waits(), 0);
  for (uint32_t m = 0; m < kGraphMembers; ++m)
    std::thread([&] { members_.backend(m).Abort(Aborted("rank 9 died")); }).join();
  for (int step = 0; step < 3; ++step) Step();
  for (CudaPart& part : operations_[0].parts)
    EXPECT_THAT(part.status.message(), HasSubstr("rank 9 died"));
  members_.cuda.Run();
  End();
}

// The graph is in the queue and waits for a member that is dead.
TEST_F(CudaGraphs, AreAbortedUnderWay) {
  for (int round = 0; round < 3; ++round) RunAsOneBatch();
  Again();
  for (int step = 0; step < 2; ++step) Step();
  for (CudaOperation& operation : operations_) members_.Step(operation, 0);
  EXPECT_EQ(Count("cuGraphLaunch"), 3 * 2 + 1);
  members_.backend(0).Abort(Aborted("rank 1 died"));
  EXPECT_EQ(Count("cuGraphExecDestroy"), 1);
  for (uint32_t m = 1; m < kGraphMembers; ++m) {
    members_.backend(m).Abort(Aborted("rank 1 died"));
    for (CudaOperation& operation : operations_)
      members_.backend(m).Abandon(std::move(operation.parts[m].state), true);
  }
  members_.cuda.Run();
  End();
}

TEST_F(CudaGraphs, NameTheCallThatFails) {
  RunAsOneBatch();
  members_.cuda.Fail("cuGraphInstantiateWithFlags", kCudaOutOfMemory);
  Again();
  for (int step = 0; step < 5; ++step) Step();
  EXPECT_THAT(operations_[0].parts[0].status.message(),
              HasSubstr("cuGraphInstantiateWithFlags answered"));
  for (uint32_t m = 0; m < kGraphMembers; ++m) members_.backend(m).Abort(Aborted("it has ended"));
  members_.cuda.Run();
  End();
}

class CudaGraphsOfSome : public CudaGraphs {
 protected:
  CudaGraphsOfSome() : CudaGraphs(Some()) {}
  static CudaMembers::Options Some() {
    CudaMembers::Options options = Options();
    options.keeps_graphs = {0, 2};
    return options;
  }
};

TEST_F(CudaGraphsOfSome, AreForAllMembersOrNone) {
  for (int round = 0; round < 3; ++round) RunAsOneBatch();
  EXPECT_EQ(Count("cuStreamBeginCapture_v2"), 0);
  End();
}

TEST_F(CudaGraphs, ADriverWithoutThemIsNamed) {
  members_.cuda.lacking = {"cuGraphLaunch"};
  for (uint32_t m = 0; m < kGraphMembers; ++m) members_.Open(m);
  for (int round = 0; round < 3; ++round) RunAsOneBatch();
  EXPECT_EQ(Count("cuStreamBeginCapture_v2"), 0);
  ASSERT_EQ(members_.said.size(), 3U);
  EXPECT_EQ(members_.said[0], "there are no CUDA graphs because libcuda.so.1 has no cuGraphLaunch");
  End();
}

}  // namespace
}  // namespace hvd::test
