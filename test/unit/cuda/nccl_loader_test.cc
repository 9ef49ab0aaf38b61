#include "runtime/backends/nccl/nccl_loader.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/backends/cuda/cuda_description.h"
#include "runtime/backends/cuda/cuda_plugin.h"
#include "runtime/backends/nccl/nccl_features.h"
#include "runtime/device/cuda/driver_loader.h"
#include "test/fakes/cuda/fake_cuda.h"

namespace hvd {
namespace {

using testing::HasSubstr;

int version_of_fake = 22809;
NcclResult result_of_fake = 0;
NcclResult TellVersion(int* version) {
  *version = version_of_fake;
  return result_of_fake;
}
void NeverCalled() { FAIL(); }

std::vector<std::string> Symbols() {
  std::vector<std::string> symbols;
  NcclApi api;
  ForEachEntry(api, [&](auto& entry) { symbols.emplace_back(entry.symbol); });
  return symbols;
}

Result<NcclLibrary> Fill(const std::set<std::string>& lacking = {}) {
  return FillNccl("libnccl.so.2", [&](const char* symbol) -> void* {
    if (lacking.contains(symbol)) return nullptr;
    if (std::string(symbol) == "ncclGetVersion") return reinterpret_cast<void*>(&TellVersion);
    return reinterpret_cast<void*>(&NeverCalled);
  });
}

class NcclLoader : public testing::Test {
 protected:
  void TearDown() override {
    version_of_fake = 22809;
    result_of_fake = 0;
  }
};

TEST_F(NcclLoader, FindsEveryEntry) {
  Result<NcclLibrary> library = Fill();
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_EQ(library->version, 22809);
  ForEachEntry(library->api,
               [](auto& entry) { EXPECT_TRUE(static_cast<bool>(entry)) << entry.symbol; });
}

TEST_F(NcclLoader, NamesEachSymbolThatIsMissing) {
  for (const std::string& symbol : Symbols()) {
    const Status status = Fill({symbol}).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("has no " + symbol));
  }
  EXPECT_THAT(Fill({"ncclSend", "ncclRecv"}).status().message(),
              HasSubstr("libnccl.so.2 of version 2.28.9 has no ncclSend, ncclRecv"));
  EXPECT_THAT(Fill({"ncclGetVersion"}).status().message(), HasSubstr("it is no NCCL"));
}

TEST_F(NcclLoader, ChecksTheVersionFirst) {
  const struct {
    int version;
    const char* words;  // "" when it is taken
  } table[] = {
      {2804, "is version 2.8.4: install 2.14.3 or newer"},
      {21402, "is version 2.14.2: install 2.14.3 or newer"},
      {21403, ""},
      {22809, ""},
      {23002, ""},
      {30000, "is version 3.0.0, which this hvdrun does not know"},
  };
  for (const auto& row : table) {
    version_of_fake = row.version;
    const Status status = Fill().status();
    EXPECT_EQ(status.ok(), *row.words == '\0') << row.version;
    EXPECT_THAT(status.message(), HasSubstr(row.words));
    // One that is too old is not blamed for what it lacks.
    if (!status.ok()) {
      EXPECT_EQ(Fill({"ncclSend"}).status().message(), status.message());
    }
  }
  result_of_fake = 3;
  EXPECT_THAT(Fill().status().message(), HasSubstr("does not tell its version: error 3"));
}

TEST_F(NcclLoader, AMissingLibraryIsASentence) {
  const Status status = LoadNccl("libhvd_no_such_nccl.so.2").status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("libhvd_no_such_nccl.so.2 cannot be loaded: "));
  EXPECT_THAT(status.message(), HasSubstr("frameworks with CUDA bring it"));
}

TEST_F(NcclLoader, AnotherLibraryIsNoNccl) {
  EXPECT_THAT(LoadNccl("libm.so.6").status().message(), HasSubstr("it is no NCCL"));
}

#ifdef HVD_NCCL_FILE
// The real one: found by its path, and then as the copy that is mapped already.
TEST_F(NcclLoader, TakesTheCopyThatTheProcessHas) {
  Result<NcclLibrary> first = LoadNccl(HVD_NCCL_FILE);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_GE(first->version, kOldestNccl);
  const Result<NcclLibrary> second = LoadNccl("libnccl.so.2");
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_TRUE(second->shared);
  EXPECT_EQ(second->path, first->path);
  EXPECT_STREQ(second->api.get_error_string(kNcclSuccess), "no error");
}

// The real one has what the table says of its version.
TEST_F(NcclLoader, FindsTheFeaturesOfTheVersion) {
  const Result<NcclLibrary> library = LoadNccl(HVD_NCCL_FILE);
  ASSERT_TRUE(library.ok()) << library.status().message();
  for (int i = 0; i < kNcclFeatureCount; ++i) {
    const auto feature = static_cast<NcclFeature>(i);
    const Status status = CheckNcclFeature(*library, feature);
    EXPECT_EQ(status.ok(), library->version >= FirstVersionWith(feature)) << status.message();
  }
}
#endif

TEST(DescribeCuda, SaysWhatIsThere) {
  test::FakeCuda fake;
  fake.devices = 2;
  const Result<NcclLibrary> nccl = Fill();
  EXPECT_EQ(DescribeCuda("75 80", fake.Driver(), nccl),
            "kernels for sm_75, sm_80 and, as PTX, newer GPUs\n"
            "driver of CUDA 13.0, GPUs: Fake GPU, Fake GPU\n"
            "NCCL 2.28.9, libnccl.so.2\n");
}

TEST(DescribeCuda, SaysWhyItIsNot) {
  EXPECT_EQ(DescribeCuda("90", Unsupported("no driver"), Unsupported("no NCCL")),
            "kernels for sm_90 and, as PTX, newer GPUs\nno driver\nno NCCL\n");
}

TEST(CudaPlugin, AMissingLibraryIsASentence) {
  const Status status = LoadCudaPlugin("/nowhere").status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("there is no /nowhere/libhvd_cuda.so"));
}

#ifdef HVD_CUDA_FOLDER
TEST(CudaPlugin, OpensADeviceOrSaysWhyNot) {
  const Result<CudaPlugin> plugin = LoadCudaPlugin(HVD_CUDA_FOLDER);
  ASSERT_TRUE(plugin.ok()) << plugin.status().message();
  Status status;
  const std::unique_ptr<Device> device(plugin->open_device(3, 0, &status));
  if (device == nullptr) {
    EXPECT_THAT(status.message(), HasSubstr("CUDA cannot be used because "));
  } else {
    EXPECT_THAT(device->name(), HasSubstr("CUDA device 0"));
  }
}

TEST(CudaPlugin, DescribesThisMachine) {
  void* library = ::dlopen(HVD_CUDA_FOLDER "/libhvd_cuda.so", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  auto describe = reinterpret_cast<CudaDescribe>(::dlsym(library, kCudaDescribeName));
  ASSERT_NE(describe, nullptr);
  char text[4096] = "";
  describe(text, sizeof(text));
  EXPECT_THAT(text, HasSubstr("kernels for sm_"));
  char few[8];
  describe(few, sizeof(few));
  EXPECT_STREQ(few, "kernels");
  // It needs neither CUDA nor NCCL to load, and shows what it is asked for alone.
  EXPECT_EQ(::dlsym(library, "hvd_kernels_image"), nullptr);
}
#endif

}  // namespace
}  // namespace hvd
