#include "runtime/backends/cuda/captured_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "runtime/device/cuda/cuda_graph.h"
#include "runtime/device/cuda/device_memory.h"
#include "test/fakes/cuda/fake_cuda.h"

namespace hvd {
namespace {

using Action = CapturedBatches::Action;
using testing::HasSubstr;
using testing::IsEmpty;

class CapturedBatchesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = CudaDevice::Open(fake_.Driver(), {.rank = 3, .ordinal = 1, .kernels = &kImage});
    ASSERT_TRUE(device.ok());
    device_ = std::move(*device);
    batches_ = std::make_unique<CapturedBatches>(*device_);
  }
  void TearDown() override {
    batches_.reset();
    device_.reset();
    EXPECT_THAT(fake_.Leaks(), IsEmpty());
    EXPECT_THAT(fake_.Complaints(), IsEmpty());
  }
  // Adds 1 to counts_[number], in whatever action.
  Action Do(uint32_t number) {
    const Action action = batches_->Choose({number, 7});
    Status done;
    if (action == Action::kCapture) {
      EXPECT_TRUE(*batches_->Begin());
    }
    if (action != Action::kLaunch) {
      EXPECT_TRUE(device_
                      ->With([&](CuStream stream) {
                        test::FakeCuda::Give(stream, [this, number] { counts_[number] += 1; });
                        return Status::Ok();
                      })
                      .ok());
    }
    if (action == Action::kCapture) done = batches_->LaunchCaptured();
    if (action == Action::kLaunch) done = batches_->Launch();
    EXPECT_TRUE(done.ok()) << done.message();
    return action;
  }

  static constexpr int kImage = 0;  // stands for the fat binary
  test::FakeCuda fake_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CapturedBatches> batches_;
  std::map<uint32_t, int> counts_;
};

TEST_F(CapturedBatchesTest, GivesCapturesLaunches) {
  EXPECT_EQ(Do(1), Action::kEnqueue);
  EXPECT_EQ(Do(2), Action::kEnqueue);
  EXPECT_EQ(Do(1), Action::kCapture);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Do(1), Action::kLaunch);
  EXPECT_EQ(Do(2), Action::kCapture);
  EXPECT_EQ(batches_->Choose({1}), Action::kEnqueue) << "a part of another key";
  EXPECT_EQ(batches_->Choose({}), Action::kEnqueue);
  EXPECT_EQ(batches_->Choose({}), Action::kEnqueue) << "without a key nothing is kept";
  EXPECT_TRUE(fake_.Run());
  EXPECT_EQ(counts_, (std::map<uint32_t, int>{{1, 7}, {2, 2}}));
  EXPECT_EQ(fake_.Waits(), 0);
}

TEST_F(CapturedBatchesTest, ForgetsTheGraphThatWasNotUsedForLongest) {
  const auto most = static_cast<uint32_t>(CapturedBatches::kMostGraphs);
  for (uint32_t i = 0; i < most; ++i) Do(i), Do(i);
  EXPECT_EQ(Do(0), Action::kLaunch);
  Do(most), Do(most);  // takes the place of 1
  EXPECT_EQ(fake_.Count("cuGraphExecDestroy"), 1);
  EXPECT_EQ(Do(0), Action::kLaunch);
  EXPECT_EQ(Do(1), Action::kEnqueue);
  EXPECT_EQ(Do(1), Action::kCapture);
  EXPECT_EQ(fake_.Count("cuGraphExecDestroy"), 2);
  EXPECT_TRUE(fake_.Run());
  EXPECT_EQ(counts_[1], 4);
}

TEST_F(CapturedBatchesTest, RemembersSoManyKeys) {
  Do(5), Do(5);
  for (uint32_t i = 0; i < CapturedBatches::kMostKeys; ++i) {
    EXPECT_EQ(batches_->Choose({100 + i}), Action::kEnqueue);
  }
  EXPECT_EQ(fake_.Count("cuGraphExecDestroy"), 1);
  EXPECT_EQ(Do(5), Action::kEnqueue);
  EXPECT_TRUE(fake_.Run());
}

// Launched work goes on, and work that is being captured is forgotten.
TEST_F(CapturedBatchesTest, AreDroppedFromAnotherThread) {
  Do(1), Do(1);
  Do(2);
  ASSERT_EQ(batches_->Choose({2, 7}), Action::kCapture);
  ASSERT_TRUE(*batches_->Begin());
  std::thread([&] { batches_->Drop(Aborted("rank 9 died")); }).join();
  EXPECT_THAT(batches_->LaunchCaptured().message(), HasSubstr("rank 9 died"));
  EXPECT_THAT(batches_->Launch().message(), HasSubstr("rank 9 died"));
  EXPECT_THAT(batches_->Begin().status().message(), HasSubstr("rank 9 died"));
  EXPECT_EQ(batches_->Choose({1, 7}), Action::kEnqueue);
  EXPECT_TRUE(fake_.Run());
  EXPECT_EQ(counts_[1], 2);
}

TEST_F(CapturedBatchesTest, NobodyWaitsForTheContextDuringACapture) {
  const Result<DeviceAddress> first = device_->Allocate(8), second = device_->Allocate(8);
  Do(1);
  ASSERT_EQ(batches_->Choose({1, 7}), Action::kCapture);
  CaptureGate::OfProcess().Run([&] { EXPECT_FALSE(*batches_->Begin()) << "somebody waits"; });
  ASSERT_TRUE(*batches_->Begin());
  FreeDeviceMemory(fake_.Driver(), 1, *first);
  EXPECT_EQ(fake_.device_memory.size(), 2U);
  EXPECT_EQ(fake_.Waits(), 0);
  EXPECT_TRUE(batches_->LaunchCaptured().ok());
  FreeDeviceMemory(fake_.Driver(), 1, *second);
  EXPECT_EQ(fake_.device_memory.size(), 0U) << "both";
}

TEST_F(CapturedBatchesTest, EachCallThatFailsIsNamed) {
  for (const char* symbol : {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                             "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
    batches_ = std::make_unique<CapturedBatches>(*device_);
    Do(1);
    fake_.Fail(symbol, 901);
    ASSERT_EQ(batches_->Choose({1, 7}), Action::kCapture);
    Status status = batches_->Begin().status();
    if (status.ok()) status = batches_->LaunchCaptured();
    EXPECT_THAT(status.message(), HasSubstr(std::string(symbol) + " answered"));
    EXPECT_THAT(status.message(), HasSubstr("rank 3 on CUDA device 1"));
    fake_.Fail(symbol, 0);
    batches_->Drop(Aborted("rank 9 died"));
    EXPECT_TRUE(device_->Record().ok()) << "the queue captures no more";
  }
  EXPECT_TRUE(fake_.Run());
}

}  // namespace
}  // namespace hvd
