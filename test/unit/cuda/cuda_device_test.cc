#include "runtime/device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/device/cuda/device_memory.h"
#include "test/fakes/cuda/fake_cuda.h"

namespace hvd {
namespace {

using test::FakeCuda;
using testing::HasSubstr;
using testing::IsEmpty;

const int kKernels = 0;  // stands for the fat binary

template <typename T>
T* Memory(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override { device_ = Open(); }
  void TearDown() override {
    device_.reset();
    EXPECT_THAT(fake_.Leaks(), IsEmpty());
    EXPECT_THAT(fake_.Complaints(), IsEmpty());
  }
  std::unique_ptr<CudaDevice> Open() {
    auto device = CudaDevice::Open(fake_.Driver(), {.rank = 3, .ordinal = 1, .kernels = &kKernels});
    EXPECT_TRUE(device.ok()) << device.status().message();
    return device.ok() ? std::move(*device) : nullptr;
  }

  FakeCuda fake_;
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(CudaDeviceTest, HasAName) { EXPECT_EQ(device_->name(), "CUDA device 1 (Fake GPU, sm_90)"); }

TEST_F(CudaDeviceTest, LeavesTheCallersContextCurrent) {
  EXPECT_EQ(fake_.CurrentContexts(), 0U);
  EXPECT_TRUE(device_->Record().ok());
  EXPECT_FALSE(device_->CopyIn(0, nullptr, 1).ok());
  EXPECT_EQ(fake_.CurrentContexts(), 0U);
}

// 300 gradients into one buffer as float16, and back as float32 at half their size.
TEST_F(CudaDeviceTest, PacksAndUnpacksHundredsOfTensorsByOneLaunchEach) {
  std::vector<DeviceTensor> tensors;
  for (uint64_t i = 0; i < 300; ++i) {
    tensors.push_back({fake_.MakeMemory((i + 1) * sizeof(float)), i + 1});
    for (uint64_t k = 0; k <= i; ++k) {
      Memory<float>(tensors.back().address)[k] = static_cast<float>(i % 100) + 0.5F;
    }
  }
  const std::vector<uint64_t> offsets = BufferOffsets(DType::kFloat16, tensors);
  const Result<DeviceAddress> buffer = device_->Allocate(offsets.back());
  ASSERT_TRUE(buffer.ok());
  ASSERT_TRUE(
      device_->Move({DType::kFloat32, DType::kFloat16, 1.0}, PackItems(tensors, *buffer, offsets))
          .ok());
  ASSERT_TRUE(
      device_->Move({DType::kFloat16, DType::kFloat32, 0.5}, UnpackItems(tensors, *buffer, offsets))
          .ok());
  EXPECT_EQ(fake_.Count("cuLaunchKernel"), 2);
  EXPECT_EQ(Memory<float>(tensors[7].address)[7], 7.5F);  // nothing is done yet
  EXPECT_TRUE(fake_.Run());
  for (uint64_t i = 0; i < 300; ++i) {
    for (uint64_t k = 0; k <= i; ++k) {
      ASSERT_EQ(Memory<float>(tensors[i].address)[k], (static_cast<float>(i % 100) + 0.5F) / 2);
    }
  }
  EXPECT_EQ(fake_.Waits(), 0);
  EXPECT_TRUE(device_->Free(*buffer).ok());
}

TEST_F(CudaDeviceTest, TakesTheSmallKernelForFewTensors) {
  const uint64_t memory = fake_.MakeMemory(8000);
  for (size_t count : {size_t{1}, size_t{kSmallBatch}, size_t{kSmallBatch} + 1, size_t{1500}}) {
    std::memset(Memory<char>(memory), 1, 4000);
    std::memset(Memory<char>(memory + 4000), 0, 4000);
    std::vector<BatchItem> items;
    for (size_t i = 0; i < count; ++i) items.push_back({memory + i, memory + 4000 + i, 1});
    ASSERT_TRUE(device_->Move({DType::kInt8, DType::kInt8, 1.0}, items).ok());
    ASSERT_TRUE(fake_.Run());
    for (size_t i = 0; i < 4000; ++i) {
      ASSERT_EQ(Memory<char>(memory + 4000)[i], i < count ? 1 : 0) << count;
    }
  }
  EXPECT_EQ(fake_.Count("cuLaunchKernel"), 5);  // 1,500 are two
}

TEST_F(CudaDeviceTest, BeginsAfterTheCallersStream) {
  for (CuStream stream : {fake_.MakeStream(), CuStream{nullptr}}) {
    const uint64_t from = fake_.MakeMemory(4), to = fake_.MakeMemory(4);
    FakeCuda::Give(stream, [&] { *Memory<float>(from) = 42; });
    ASSERT_TRUE(device_->BeginAfter(stream).ok());
    const std::vector<BatchItem> items = {{from, to, 1}};
    ASSERT_TRUE(device_->Move({}, items).ok());
    fake_.Run(fake_.streams.front().get());  // ours comes first, and has to wait
    EXPECT_NE(*Memory<float>(to), 42);
    ASSERT_TRUE(fake_.Run());
    EXPECT_EQ(*Memory<float>(to), 42);
  }
  EXPECT_EQ(fake_.Waits(), 0);
}

TEST_F(CudaDeviceTest, LetsTheCallersStreamFollow) {
  const CuStream stream = fake_.MakeStream();
  const uint64_t from = fake_.MakeMemory(4), to = fake_.MakeMemory(4);
  *Memory<float>(from) = 42;
  const std::vector<BatchItem> items = {{from, to, 1}};
  float seen = 0;
  ASSERT_TRUE(device_->Move({}, items).ok());
  ASSERT_TRUE(device_->LetFollow(stream).ok());
  FakeCuda::Give(stream, [&] { seen = *Memory<float>(to); });
  fake_.Run(stream);
  EXPECT_EQ(seen, 0);
  ASSERT_TRUE(fake_.Run());
  EXPECT_EQ(seen, 42);
  EXPECT_EQ(fake_.Waits(), 0);
}

// An event is used again while a stream still waits for what it stood for.
TEST_F(CudaDeviceTest, OrdersThousandsOfTimesWithOneEvent) {
  const CuStream stream = fake_.MakeStream();
  std::vector<int> order;
  for (int i = 0; i < 2000; ++i) {
    FakeCuda::Give(stream, [&order, i] { order.push_back(i); });
    ASSERT_TRUE(device_->BeginAfter(stream).ok());
    ASSERT_TRUE(device_->LetFollow(stream).ok());
  }
  EXPECT_EQ(fake_.Count("cuEventCreate"), 1);
  EXPECT_TRUE(fake_.Run());
  EXPECT_EQ(order.size(), 2000U);
}

TEST_F(CudaDeviceTest, ATicketIsReadyWhenWhatCameBeforeItIsDone) {
  const uint64_t memory = fake_.MakeMemory(64);
  const std::vector<BatchItem> items = {{memory, memory + 32, 8}};
  const Result<DeviceTicket> before = device_->Record();
  ASSERT_TRUE(device_->Move({}, items).ok());
  const Result<DeviceTicket> after = device_->Record();
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_FALSE(*device_->Ready(*before));
  EXPECT_FALSE(*device_->Ready(*after));
  ASSERT_TRUE(fake_.Run());
  EXPECT_TRUE(*device_->Ready(*after));
  EXPECT_TRUE(*device_->Ready(*before));
  EXPECT_THAT(device_->Ready({.number = 3}).status().message(), HasSubstr("never given"));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(device_->Record().ok());
    ASSERT_TRUE(fake_.Run());
  }
  EXPECT_LE(fake_.Count("cuEventCreate"), 2);
}

TEST_F(CudaDeviceTest, CopiesThroughStaging) {
  const Result<DeviceAddress> memory = device_->Allocate(100000);
  const Result<std::byte*> in = device_->BorrowStaging(100000);
  const Result<std::byte*> out = device_->BorrowStaging(100000);
  ASSERT_TRUE(memory.ok() && in.ok() && out.ok());
  std::memset(*in, 7, 100000);
  std::memset(*out, 0, 100000);
  ASSERT_TRUE(device_->CopyIn(*memory, *in, 100000).ok());
  ASSERT_TRUE(device_->CopyOut(*out, *memory, 100000).ok());
  const Result<DeviceTicket> ticket = device_->Record();
  EXPECT_FALSE(*device_->Ready(*ticket));
  ASSERT_TRUE(fake_.Run());
  EXPECT_TRUE(*device_->Ready(*ticket));
  EXPECT_EQ(std::memcmp(*in, *out, 100000), 0);
  EXPECT_EQ(fake_.Waits(), 0);
  EXPECT_TRUE(device_->Free(*memory).ok());
}

TEST_F(CudaDeviceTest, LendsStagingAgainOnlyWhenTheDeviceIsDoneWithIt) {
  const Result<DeviceAddress> memory = device_->Allocate(1000);
  const Result<std::byte*> first = device_->BorrowStaging(1000);
  ASSERT_TRUE(device_->CopyIn(*memory, *first, 1000).ok());
  ASSERT_TRUE(device_->ReturnStaging(*first).ok());
  const Result<std::byte*> second = device_->BorrowStaging(1000);
  EXPECT_NE(*second, *first);  // the device may still read the first
  ASSERT_TRUE(fake_.Run());
  const Result<std::byte*> third = device_->BorrowStaging(2000);
  EXPECT_EQ(*third, *first);
  EXPECT_EQ(fake_.Count("cuMemHostAlloc"), 2);
  EXPECT_FALSE(device_->ReturnStaging(*first + 1).ok());
  EXPECT_TRUE(device_->ReturnStaging(*second).ok());
  EXPECT_THAT(device_->ReturnStaging(*second).message(), HasSubstr("not lent"));
  EXPECT_TRUE(device_->Free(*memory).ok());
}

TEST_F(CudaDeviceTest, RefusesMemoryOfTheHostThatIsNotStaging) {
  const Result<DeviceAddress> memory = device_->Allocate(1 << 20);
  const Result<std::byte*> staging = device_->BorrowStaging(64 * 1024);
  std::vector<std::byte> own(100);
  EXPECT_EQ(device_->CopyIn(*memory, own.data(), 100).code(), Code::kInvalidArgument);
  EXPECT_EQ(device_->CopyOut(own.data(), *memory, 100).code(), Code::kInvalidArgument);
  EXPECT_FALSE(device_->CopyIn(*memory, *staging + 1, 64 * 1024).ok());  // one byte too long
  EXPECT_FALSE(device_->CopyIn(*memory, *staging, ~size_t{0}).ok());
  EXPECT_TRUE(device_->CopyIn(*memory, *staging + 1, 64 * 1024 - 1).ok());
  EXPECT_TRUE(device_->Free(*memory).ok());
}

TEST_F(CudaDeviceTest, FreesWhatWaitingWorkUsesOnlyAfterIt) {
  const Result<DeviceAddress> memory = device_->Allocate(64);
  const std::vector<BatchItem> items = {{*memory, *memory + 32, 8}};
  ASSERT_TRUE(device_->Move({}, items).ok());
  EXPECT_TRUE(device_->Free(*memory).ok());
  EXPECT_EQ(device_->Free(12345).code(), Code::kInternal);
}

TEST_F(CudaDeviceTest, EndsWithWorkUnderWay) {
  const Result<std::byte*> staging = device_->BorrowStaging(64);
  const uint64_t memory = fake_.MakeMemory(64);
  ASSERT_TRUE(device_->CopyIn(memory, *staging, 64).ok());
  ASSERT_TRUE(device_->Record().ok());
}

TEST_F(CudaDeviceTest, WhatAGpuCannotDoIsNotLaunched) {
  EXPECT_EQ(device_->Move({DType::kInt8, DType::kFloat16, 1.0}, {}).code(), Code::kUnsupported);
  EXPECT_EQ(fake_.Count("cuLaunchKernel"), 0);
}

// ---- captures of the program

TEST_F(CudaDeviceTest, IsNoPartOfACaptureOfTheProgram) {
  const CuStream stream = fake_.MakeStream();
  for (CuStream captured : {stream, CuStream{nullptr}}) {
    (captured == nullptr ? fake_.default_stream : *captured).captured = true;
    for (const Status& refused : {device_->Mark(captured).status(), device_->LetFollow(captured)}) {
      EXPECT_EQ(refused.code(), Code::kUnsupported);
      EXPECT_THAT(refused.message(), HasSubstr("is being captured for a CUDA graph"));
    }
    (captured == nullptr ? fake_.default_stream : *captured).captured = false;
    const Result<DeviceMark> mark = device_->Mark(captured);
    ASSERT_TRUE(mark.ok());
    device_->DropMark(*mark);
    EXPECT_TRUE(device_->LetFollow(captured).ok());
  }
  EXPECT_TRUE(fake_.Run());
}

// ---- each call fails

TEST_F(CudaDeviceTest, AFailureWhileOpeningNamesTheCallAndLeavesNothing) {
  device_.reset();
  for (const char* symbol :
       {"cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
        "cuCtxPushCurrent_v2", "cuThreadExchangeStreamCaptureMode", "cuCtxGetStreamPriorityRange",
        "cuStreamCreateWithPriority", "cuModuleLoadData", "cuModuleGetFunction"}) {
    for (CuResult result : {1, kCudaOutOfMemory, kCudaNoBinaryForGpu, kCudaUnknown}) {
      FakeCuda* before = &fake_;
      fake_.Fail(symbol, result);
      const auto device =
          CudaDevice::Open(fake_.Driver(), {.rank = 3, .ordinal = 1, .kernels = &kKernels});
      ASSERT_FALSE(device.ok()) << symbol;
      EXPECT_EQ(device.status().code(), CodeOfCudaError(result));
      EXPECT_THAT(device.status().message(), HasSubstr("rank 3 on CUDA device 1"));
      EXPECT_THAT(device.status().message(), HasSubstr(std::string(symbol) + " answered"));
      EXPECT_THAT(fake_.Leaks(), IsEmpty()) << symbol;
      before->Fail(symbol, 0);
    }
  }
}

TEST_F(CudaDeviceTest, AFailureLaterNamesTheCallAndTheDeviceWorksOn) {
  const uint64_t memory = fake_.MakeMemory(64);
  const std::vector<BatchItem> items = {{memory, memory + 32, 8}};
  const Result<std::byte*> staging = device_->BorrowStaging(64);
  const std::vector<std::pair<const char*, std::function<Status()>>> calls = {
      {"cuEventCreate", [&] { return device_->Record().status(); }},
      {"cuEventRecord", [&] { return device_->Record().status(); }},
      {"cuEventRecord", [&] { return device_->BeginAfter(nullptr); }},
      {"cuStreamWaitEvent", [&] { return device_->LetFollow(nullptr); }},
      {"cuStreamIsCapturing", [&] { return device_->LetFollow(nullptr); }},
      {"cuThreadExchangeStreamCaptureMode", [&] { return device_->Record().status(); }},
      {"cuMemAlloc_v2", [&] { return device_->Allocate(100).status(); }},
      {"cuMemHostAlloc", [&] { return device_->BorrowStaging(1 << 20).status(); }},
      {"cuMemcpyHtoDAsync_v2", [&] { return device_->CopyIn(memory, *staging, 64); }},
      {"cuMemcpyDtoHAsync_v2", [&] { return device_->CopyOut(*staging, memory, 64); }},
      {"cuLaunchKernel", [&] { return device_->Move({}, items); }},
  };
  for (const auto& [symbol, call] : calls) {
    fake_.Fail(symbol, kCudaOutOfMemory);
    const Status status = call();
    EXPECT_EQ(status.code(), Code::kOutOfMemory) << symbol;
    EXPECT_THAT(status.message(), HasSubstr("rank 3 on CUDA device 1 (Fake GPU, sm_90): " +
                                            std::string(symbol) + " answered"));
    EXPECT_EQ(fake_.CurrentContexts(), 0U);
    fake_.Fail(symbol, 0);
  }
  EXPECT_TRUE(device_->Move({}, items).ok());
  EXPECT_TRUE(fake_.Run());
}

// A thread of the program captures, and the fake complains of calls that would break that.
TEST(CudaDevice, BreaksNoCaptureOfTheProgram) {
  FakeCuda fake;
  fake.program_captures = true;
  auto device = CudaDevice::Open(fake.Driver(), {.rank = 3, .ordinal = 1, .kernels = &kKernels});
  ASSERT_TRUE(device.ok());
  const Result<DeviceAddress> memory = (*device)->Allocate(100), left = (*device)->Allocate(10);
  const Result<std::byte*> staging = (*device)->BorrowStaging(100);
  ASSERT_TRUE(memory.ok() && left.ok() && staging.ok());
  EXPECT_TRUE((*device)->CopyIn(*memory, *staging, 100).ok());
  const Result<DeviceTicket> ticket = (*device)->Record();
  EXPECT_FALSE(*(*device)->Ready(*ticket));
  EXPECT_TRUE((*device)->Free(*memory).ok());
  device->reset();
  FreeDeviceMemory(fake.Driver(), 1, *left);
  EXPECT_THAT(fake.Leaks(), IsEmpty());
  EXPECT_THAT(fake.Complaints(), IsEmpty());
  CuAddress more = 0;
  (void)fake.Driver().mem_alloc(&more, 10);
  EXPECT_THAT(fake.Complaints(),
              testing::Contains("cuMemAlloc_v2 breaks a capture of the program"));
}

// An error of an earlier kernel shows at any later call, and the fake complains of each call after
// it.
TEST(CudaDevice, SaysTheFirstErrorAgainWhenTheContextIsUnusable) {
  for (const char* symbol : {"cuEventQuery", "cuLaunchKernel", "cuEventRecord"}) {
    FakeCuda fake;
    auto device = CudaDevice::Open(fake.Driver(), {.rank = 3, .ordinal = 1, .kernels = &kKernels});
    ASSERT_TRUE(device.ok());
    const uint64_t memory = fake.MakeMemory(64);
    const std::vector<BatchItem> items = {{memory, memory + 32, 8}};
    const Result<DeviceTicket> ticket = (*device)->Record();
    fake.Fail(symbol, kCudaIllegalAddress);
    Status first = (*device)->Ready(*ticket).status();
    if (first.ok()) first = (*device)->Move({}, items);
    if (first.ok()) first = (*device)->Record().status();
    EXPECT_EQ(first.code(), Code::kAborted);
    EXPECT_THAT(first.message(), HasSubstr(std::string(symbol) + " answered"));
    EXPECT_EQ((*device)->Move({}, items).message(), first.message());
    EXPECT_EQ((*device)->Allocate(8).status().message(), first.message());
    EXPECT_EQ((*device)->Ready(*ticket).status().message(), first.message());
    EXPECT_EQ((*device)->BorrowStaging(8).status().message(), first.message());
    device->reset();
    EXPECT_EQ(fake.retained, 0);
    EXPECT_THAT(fake.Complaints(), IsEmpty());
  }
}

// The fake finds mistakes: each rule that the tests above stand on can fail.
TEST(FakeCuda, ComplainsOfWhatADriverWouldNotForgive) {
  FakeCuda fake;
  const CudaDriver driver = fake.Driver();
  CuContext context = nullptr;
  CuStream stream = nullptr;
  CuEvent event = nullptr;
  CuAddress memory = 0;
  void* pinned = nullptr;
  driver.event_create(&event, kCudaEventDisableTiming);
  EXPECT_EQ(fake.Complaints().size(), 1U);  // no context is current
  driver.primary_ctx_retain(&context, 100);
  driver.ctx_push_current(context);
  driver.stream_create(&stream, kCudaStreamNonBlocking, -5);
  driver.stream_wait_event(stream, event, 0);
  EXPECT_THAT(fake.Complaints().back(), HasSubstr("never recorded"));
  driver.mem_alloc(&memory, 64);
  driver.mem_host_alloc(&pinned, 64, kCudaHostPortable);
  driver.memcpy_to_device(memory, pinned, 65, stream);
  EXPECT_THAT(fake.Complaints().back(), HasSubstr("a copy is not of pinned memory"));
  driver.memcpy_to_device(memory, pinned, 64, stream);
  driver.event_record(event, stream);
  EXPECT_EQ(driver.event_query(event), kCudaNotReady);
  driver.mem_free_host(pinned);
  EXPECT_THAT(fake.Complaints().back(), HasSubstr("cuMemFreeHost of memory that waiting work"));
  driver.stream_destroy(stream);
  EXPECT_THAT(fake.Complaints().back(), HasSubstr("that has work"));
  driver.event_destroy(event);
  driver.event_destroy(event);
  EXPECT_THAT(fake.Complaints().back(), HasSubstr("destroyed twice"));
  EXPECT_THAT(fake.Leaks(), testing::ElementsAre("1 pieces of device memory", "1 retained contexts",
                                                 "1 current contexts"));
}

}  // namespace
}  // namespace hvd
