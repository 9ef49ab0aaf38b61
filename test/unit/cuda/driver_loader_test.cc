#include "runtime/device/cuda/driver_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/device/cuda/cuda_calls.h"
#include "test/fakes/cuda/fake_cuda.h"

namespace hvd {
namespace {

using test::FakeCuda;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Result<CudaDriver> Fill(const FakeCuda& fake) {
  return FillCudaDriver("libcuda.so.1", [&](const char* symbol) { return fake.Find(symbol); });
}

TEST(CudaDriverLoader, FindsEveryEntry) {
  const FakeCuda fake;
  Result<CudaDriver> driver = Fill(fake);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  int entries = 0;
  ForEachEntry(*driver, [&](auto& entry) {
    EXPECT_TRUE(static_cast<bool>(entry)) << entry.symbol;
    ++entries;
  });
  EXPECT_EQ(entries, static_cast<int>(FakeCuda::Symbols().size()));
  EXPECT_TRUE(StartCudaDriver(*driver).ok());
  EXPECT_EQ(CudaDriverVersion(*driver), "CUDA 13.0");
}

TEST(CudaDriverLoader, NamesEachSymbolThatIsMissing) {
  FakeCuda fake;
  for (const std::string& symbol : FakeCuda::Symbols()) {
    fake.lacking = {symbol};
    const Status status = Fill(fake).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_EQ(status.message(), "CUDA cannot be used because libcuda.so.1 has no " + symbol +
                                    ": the driver is too old; install one for CUDA 12 or newer");
  }
  fake.lacking = {"cuInit", "cuLaunchKernel"};
  EXPECT_THAT(Fill(fake).status().message(), HasSubstr("has no cuInit, cuLaunchKernel:"));
}

TEST(CudaDriverLoader, ADriverWithoutGraphsIsTaken) {
  FakeCuda fake;
  EXPECT_EQ(MissingGraphCalls(*Fill(fake)), "");
  fake.lacking = {"cuStreamBeginCapture_v2", "cuGraphLaunch"};
  ASSERT_TRUE(Fill(fake).ok());
  EXPECT_EQ(MissingGraphCalls(*Fill(fake)), "cuStreamBeginCapture_v2, cuGraphLaunch");
}

TEST(CudaDriverLoader, AMissingLibraryIsASentence) {
  const Status status = LoadCudaDriver("libhvd_no_such_driver.so.1").status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("libhvd_no_such_driver.so.1 cannot be loaded"),
                                      HasSubstr("it comes with NVIDIA's driver")));
}

TEST(CudaDriverLoader, ADriverThatDoesNotStartIsASentence) {
  for (CuResult result : {kCudaNoDevice, kCudaSystemNotReady, kCudaSystemDriverMismatch, 999}) {
    FakeCuda fake;
    fake.Fail("cuInit", result);
    const Status status = StartCudaDriver(*Fill(fake));
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_THAT(status.message(),
                HasSubstr("the driver does not start: cuInit answered CUDA_ERROR_NUMBER_" +
                          std::to_string(result)));
  }
  FakeCuda fake;
  fake.Fail("cuDeviceGetCount", 3);
  EXPECT_THAT(StartCudaDriver(*Fill(fake)).message(), HasSubstr("cuDeviceGetCount answered"));
}

TEST(CudaDriverLoader, AMachineWithoutDevicesIsASentence) {
  FakeCuda fake;
  fake.devices = 0;
  EXPECT_THAT(StartCudaDriver(*Fill(fake)).message(), HasSubstr("the driver sees no GPU"));
}

#ifdef HVD_CUDA_STUB
// The toolkit's libcuda.so has all symbols of its release and can do nothing.
TEST(CudaDriverLoader, EverySymbolIsInTheToolkit) {
  const Status status = LoadCudaDriver(HVD_CUDA_STUB).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), AllOf(Not(HasSubstr("has no")), HasSubstr("does not start"),
                                      HasSubstr("for linking was found")));
}
#endif

TEST(CudaCalls, AnErrorNamesRankDeviceAndCall) {
  const FakeCuda fake;
  CudaCalls calls(*Fill(fake), 3, "CUDA device 1");
  EXPECT_TRUE(calls.Checked("cuEventRecord", kCudaSuccess).ok());
  const Status status = calls.Checked("cuMemAlloc_v2", kCudaOutOfMemory);
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_EQ(status.message(),
            "rank 3 on CUDA device 1: cuMemAlloc_v2 answered CUDA_ERROR_NUMBER_2 (2, the words of "
            "2); use less memory of this GPU, or look for other processes on it");
  EXPECT_TRUE(calls.broken().ok());
}

TEST(CudaCalls, EachErrorHasACode) {
  const struct {
    CuResult result;
    Code code;
    bool unusable;
  } table[] = {
      {kCudaSuccess, Code::kOk, false},
      {1, Code::kInternal, false},
      {kCudaOutOfMemory, Code::kOutOfMemory, false},
      {4, Code::kInternal, false},
      {kCudaStubLibrary, Code::kUnsupported, false},
      {kCudaNoDevice, Code::kUnsupported, false},
      {101, Code::kInternal, false},
      {kCudaNoBinaryForGpu, Code::kUnsupported, false},
      {kCudaEccUncorrectable, Code::kAborted, true},
      {kCudaNvlinkUncorrectable, Code::kAborted, true},
      {kCudaUnsupportedPtx, Code::kUnsupported, false},
      {kCudaContained, Code::kAborted, true},
      {400, Code::kInternal, false},
      {kCudaIllegalAddress, Code::kAborted, true},
      {701, Code::kInternal, false},
      {kCudaLaunchTimeout, Code::kAborted, true},
      {704, Code::kInternal, false},
      {kCudaContextIsDestroyed, Code::kAborted, true},
      {kCudaAssert, Code::kAborted, true},
      {713, Code::kInternal, false},
      {kCudaHardwareStackError, Code::kAborted, true},
      {715, Code::kAborted, true},
      {716, Code::kAborted, true},
      {717, Code::kAborted, true},
      {718, Code::kAborted, true},
      {kCudaLaunchFailed, Code::kAborted, true},
      {720, Code::kInternal, false},
      {kCudaSystemNotReady, Code::kUnsupported, false},
      {kCudaUnknown, Code::kInternal, false},
  };
  for (const auto& row : table) {
    EXPECT_EQ(CodeOfCudaError(row.result), row.code) << row.result;
    EXPECT_EQ(LeavesContextUnusable(row.result), row.unusable) << row.result;
  }
}

TEST(CudaCalls, ABrokenContextIsNotCalledAgain) {
  FakeCuda fake;
  CudaCalls calls(*Fill(fake), 0, "CUDA device 0");
  const Status first = calls.Checked("cuEventQuery", kCudaIllegalAddress);
  EXPECT_EQ(calls.Do(calls.driver().ctx_push_current, CuContext{}).message(), first.message());
  EXPECT_EQ(fake.Count("cuCtxPushCurrent_v2"), 0);
  EXPECT_THAT(first.message(), HasSubstr("only a new process can use the GPU again"));
}

}  // namespace
}  // namespace hvd
