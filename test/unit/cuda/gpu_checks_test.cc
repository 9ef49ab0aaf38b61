// The checks for a GPU, over the fake driver: they pass where all is right, and find what is wrong.
#include "test/gpu/gpu_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "runtime/device/cuda/cuda_device.h"
#include "test/fakes/cuda/fake_cuda.h"

namespace hvd::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const int kKernels = 0;

class GpuChecks : public testing::Test {
 protected:
  void SetUp() override {
    auto device = CudaDevice::Open(fake_.Driver(), {.rank = 0, .ordinal = 0, .kernels = &kKernels});
    ASSERT_TRUE(device.ok());
    device_ = std::move(*device);
    options_.idle = [this] { fake_.Run(); };
    options_.now = [this] { return time_ += 0.5; };
    options_.figure_bytes = 1 << 16;
    options_.figure_rounds = 2;
  }

  FakeCuda fake_;
  std::unique_ptr<CudaDevice> device_;
  GpuCheckOptions options_;
  double time_ = 0;
};

TEST_F(GpuChecks, PassWhereAllIsRight) {
  const std::vector<GpuCheck> checks = RunGpuChecks(*device_, options_);
  EXPECT_EQ(checks.size(), 129U);  // 28 moves in 4 ways, 16 Adasums, 1 more
  for (const GpuCheck& check : checks) EXPECT_EQ(check.failure, "") << check.name;
  EXPECT_THAT(fake_.Complaints(), IsEmpty());
}

// A Device that does what another one does, but for one byte in the middle of what it reads.
class OneWrongByte final : public Device {
 public:
  explicit OneWrongByte(Device& device) : device_(device) {}
  const std::string& name() const override { return device_.name(); }
  Status BeginAfter(void* stream) override { return device_.BeginAfter(stream); }
  Result<DeviceMark> Mark(void* stream) override { return device_.Mark(stream); }
  Status BeginAfterMark(DeviceMark mark) override { return device_.BeginAfterMark(mark); }
  void DropMark(DeviceMark mark) override { device_.DropMark(mark); }
  Status LetFollow(void* stream) override { return device_.LetFollow(stream); }
  Result<DeviceTicket> Record() override { return device_.Record(); }
  Result<bool> Ready(DeviceTicket ticket) override { return device_.Ready(ticket); }
  Result<DeviceAddress> Allocate(size_t bytes) override { return device_.Allocate(bytes); }
  Status Free(DeviceAddress address) override { return device_.Free(address); }
  Result<std::byte*> BorrowStaging(size_t bytes) override { return device_.BorrowStaging(bytes); }
  Status ReturnStaging(std::byte* staging) override { return device_.ReturnStaging(staging); }
  Status CopyIn(DeviceAddress to, const std::byte* staging, size_t bytes) override {
    Status status = device_.CopyIn(to, staging, bytes);
    FakeCuda::It().Run();
    auto* middle = reinterpret_cast<unsigned char*>(to + bytes / 2 + 7);
    *middle = static_cast<unsigned char>(*middle ^ 1U);
    return status;
  }
  Status CopyOut(std::byte* staging, DeviceAddress from, size_t bytes) override {
    return device_.CopyOut(staging, from, bytes);
  }
  Status Move(const BatchSpec& spec, std::span<const BatchItem>) override {
    return device_.Move(spec, {});  // and nothing is moved
  }
  Status Adasum(const AdasumStep&) override { return Status::Ok(); }  // and nothing is done

 private:
  Device& device_;
};

TEST_F(GpuChecks, FindADeviceThatMovesNothing) {
  OneWrongByte wrong(*device_);
  int failures = 0;
  for (const GpuCheck& check : RunGpuChecks(wrong, options_))
    failures += check.failure.empty() ? 0 : 1;
  EXPECT_EQ(failures, 128);  // all that compare
}

TEST_F(GpuChecks, SayWhichCallFailed) {
  fake_.Fail("cuLaunchKernel", kCudaUnknown);
  for (const GpuCheck& check : RunGpuChecks(*device_, options_)) {
    EXPECT_THAT(check.failure, HasSubstr("cuLaunchKernel answered")) << check.name;
  }
  EXPECT_FALSE(MeasureGpu(*device_, options_).ok());
}

TEST_F(GpuChecks, MeasureBytesReadAndWritten) {
  const Result<std::vector<GpuFigure>> figures = MeasureGpu(*device_, options_);
  ASSERT_TRUE(figures.ok()) << figures.status().message();
  ASSERT_EQ(figures->size(), 6U);
  EXPECT_NEAR(figures->front().gigabytes_per_second,
              options_.moves_in_a_round * 2 * 65536 / 0.5 / 1e9, 1e-9);
}

TEST(GpuSummary, IsJson) {
  EXPECT_EQ(GpuSummary("a \"GPU\"", {{"one", ""}, {"two", "bad\nly"}}, {{"copy", 1.5}}),
            "{\"device\": \"a \\\"GPU\\\"\", \"checks\": {\"one\": \"ok\", \"two\": \"bad ly\"}, "
            "\"gigabytes_per_second\": {\"copy\": 1.500000}}");
  EXPECT_THAT(GpuSummary("GPU", {}, {{"copy", 1.5}}, 2),
              HasSubstr(", \"memory_gigabytes_per_second\": 2.000000, "
                        "\"share_of_memory_bandwidth\": {\"copy\": 0.750000}}"));
}

}  // namespace
}  // namespace hvd::test
