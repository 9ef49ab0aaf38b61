// The kernels compiled where they run: over a played NVRTC, and by the toolkit's if there is one.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/nvrtc/kernel_compiler.h"
#include "runtime/device/cuda/nvrtc/nvrtc_loader.h"
#include "test/fakes/cuda/fake_cuda.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kAnImage[] = "a fat binary";

std::vector<std::string> SymbolsOfNvrtc() {
  std::vector<std::string> symbols;
  NvrtcApi api;
  ForEachEntry(api, [&](auto& entry) { symbols.emplace_back(entry.symbol); });
  return symbols;
}

Result<NvrtcLibrary> LoadFakeNvrtc(const std::set<std::string>& lacking = {}) {
  void* handle = ::dlopen(HVD_FAKE_NVRTC, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << ::dlerror();
  return FillNvrtc("libnvrtc.so.13", [&](const char* symbol) -> void* {
    return lacking.contains(symbol) ? nullptr : ::dlsym(handle, symbol);
  });
}

TEST(NvrtcCandidates, BeginWithTheCopyThatTheProcessHas) {
  const std::vector<std::string> mapped = {
      "/venv/site-packages/torch/lib/libtorch_cuda.so",
      "/venv/site-packages/nvidia/nccl/lib/libnccl.so.2",
      "/venv/site-packages/nvidia/cublas/lib/libcublas.so.12",
      "/opt/cuda/lib64/libnvrtc.so.12",
      "/usr/lib/libm.so.6",
  };
  EXPECT_THAT(NvrtcCandidates(mapped),
              ElementsAre("/opt/cuda/lib64/libnvrtc.so.12",
                          "/venv/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                          "/venv/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
                          "/venv/site-packages/torch/lib/libnvrtc.so.13",
                          "/venv/site-packages/torch/lib/libnvrtc.so.12", "libnvrtc.so.13",
                          "libnvrtc.so.12"));
  EXPECT_THAT(NvrtcCandidates({}), ElementsAre("libnvrtc.so.13", "libnvrtc.so.12"));
}

TEST(NvrtcLoader, AMissingLibraryIsASentence) {
  const std::vector<std::string> candidates = {"/nowhere/libnvrtc.so.13",
                                               "libhvd_no_such_nvrtc.so.13"};
  const Status status = LoadNvrtcFrom(candidates).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("NVRTC cannot compile the kernels for it because there "
                                          "is no NVRTC: libhvd_no_such_nvrtc.so.13: cannot open"));
  EXPECT_THAT(status.message(), HasSubstr("; frameworks with CUDA bring it"));
}

TEST(NvrtcLoader, TakesTheFirstThatLoads) {
  const std::vector<std::string> candidates = {"/nowhere/libnvrtc.so.13", HVD_FAKE_NVRTC};
  const Result<NvrtcLibrary> library = LoadNvrtcFrom(candidates);
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_EQ(library->path, HVD_FAKE_NVRTC);
}

TEST(NvrtcLoader, NamesEachSymbolThatIsMissing) {
  for (const std::string& symbol : SymbolsOfNvrtc()) {
    const Status status = LoadFakeNvrtc({symbol}).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("libnvrtc.so.13 has no " + symbol + ": install that"));
  }
  EXPECT_THAT(SymbolsOfNvrtc(), testing::SizeIs(9));
}

TEST(KernelCompiler, CompilesForTheDevice) {
  const Result<NvrtcLibrary> nvrtc = LoadFakeNvrtc();
  ASSERT_TRUE(nvrtc.ok());
  const Result<std::vector<char>> code = CompileKernels(*nvrtc, SourceOfKernels(), 120);
  ASSERT_TRUE(code.ok()) << code.status().message();
  EXPECT_STREQ(code->data(), "FAKE CUBIN --gpu-architecture=sm_120 --std=c++17 --fmad=false");
}

TEST(KernelCompiler, SaysInOneLineWhatTheCompilerSays) {
  const Result<NvrtcLibrary> nvrtc = LoadFakeNvrtc();
  ASSERT_TRUE(nvrtc.ok());
  const KernelsSource other = {"kernels.cu", "int x;", {}};
  const Status status = CompileKernels(*nvrtc, other, 90).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(),
            "NVRTC libnvrtc.so.13 cannot compile the kernels for it: nvrtcCompileProgram answered "
            "NVRTC_ERROR_COMPILATION (6): kernels.cu(7): error: the fake compiles nothing");
}

// ---- with a device

class RefusedKernels : public testing::Test {
 protected:
  Result<std::unique_ptr<CudaDevice>> Open(CudaKernels kernels) {
    return CudaDevice::Open(fake_.Driver(), {.rank = 3, .kernels = std::move(kernels)});
  }
  void TearDown() override {
    EXPECT_THAT(fake_.Leaks(), IsEmpty());
    EXPECT_THAT(fake_.Complaints(), IsEmpty());
  }

  test::FakeCuda fake_;
};

TEST_F(RefusedKernels, AreCompiledForTheDevice) {
  fake_.taken_image = "FAKE CUBIN";
  int asked = 0;
  const auto device = Open({kAnImage, [&](int capability) -> Result<const void*> {
                              asked = capability;
                              return static_cast<const void*>("FAKE CUBIN");
                            }});
  EXPECT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(asked, 90);
}

TEST_F(RefusedKernels, ThatCannotBeCompiledAreOneSentence) {
  fake_.taken_image = "FAKE CUBIN";
  const Status status =
      Open({kAnImage, [](int) -> Result<const void*> { return Unsupported("there is no NVRTC"); }})
          .status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("rank 3 on CUDA device 0"));
  EXPECT_THAT(status.message(), HasSubstr("cuModuleLoadData answered CUDA_ERROR_NUMBER_209"));
  EXPECT_THAT(status.message(), HasSubstr("; there is no NVRTC"));
}

TEST_F(RefusedKernels, AreTriedOnceMoreOnly) {
  fake_.taken_image = "FAKE CUBIN";
  const Status status =
      Open({kAnImage,
            [](int) -> Result<const void*> { return static_cast<const void*>("ANOTHER ONE"); }})
          .status();
  EXPECT_THAT(status.message(), HasSubstr("cuModuleLoadData answered CUDA_ERROR_NUMBER_209"));
}

// An error of another kind is no refusal.
TEST_F(RefusedKernels, AreNotCompiledForAnotherReason) {
  fake_.Fail("cuModuleLoadData", kCudaOutOfMemory);
  const Status status = Open({kAnImage,
                              [](int) -> Result<const void*> {
                                ADD_FAILURE();
                                return Unsupported("");
                              }})
                            .status();
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
}

#ifdef HVD_NVRTC_FILE
// The real compiler needs no GPU: the text in the library is whole, and gives code for each kind of
// device.
TEST(RealNvrtc, CompilesTheKernels) {
  const std::vector<std::string> candidates = {HVD_NVRTC_FILE};
  const Result<NvrtcLibrary> nvrtc = LoadNvrtcFrom(candidates);
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().message();
  const Result<std::vector<char>> code = CompileKernels(*nvrtc, SourceOfKernels(), 90);
  ASSERT_TRUE(code.ok()) << code.status().message();
  const std::string text(code->begin(), code->end());
  EXPECT_THAT(text, testing::StartsWith("\x7f"
                                        "ELF"));
  for (const char* name : {"hvd_batch_small", "hvd_batch_large", "hvd_adasum_dots",
                           "hvd_adasum_fold", "hvd_adasum_weigh", "hvd_adasum_sum"})
    EXPECT_THAT(text, HasSubstr(name));
}

TEST(RealNvrtc, NamesAnArchitectureThatItDoesNotKnow) {
  const std::vector<std::string> candidates = {HVD_NVRTC_FILE};
  const Result<NvrtcLibrary> nvrtc = LoadNvrtcFrom(candidates);
  ASSERT_TRUE(nvrtc.ok());
  const Status status = CompileKernels(*nvrtc, SourceOfKernels(), 999).status();
  EXPECT_THAT(status.message(),
              HasSubstr("nvrtcCompileProgram answered NVRTC_ERROR_INVALID_OPTION"));
  EXPECT_THAT(status.message(), HasSubstr("gpu-architecture"));
  EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
}

TEST(RealNvrtc, ShowsAnErrorOfTheText) {
  const std::vector<std::string> candidates = {HVD_NVRTC_FILE};
  const Result<NvrtcLibrary> nvrtc = LoadNvrtcFrom(candidates);
  ASSERT_TRUE(nvrtc.ok());
  const KernelsSource wrong = {"kernels.cu", "#include \"nothing.h\"\n", {}};
  const Status status = CompileKernels(*nvrtc, wrong, 90).status();
  EXPECT_THAT(status.message(), HasSubstr("NVRTC_ERROR_COMPILATION (6): "));
  EXPECT_THAT(status.message(), HasSubstr("nothing.h"));
}
#endif

}  // namespace
}  // namespace hvd
