#include "runtime/backends/inter_host_loader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/fakes/memory_kv_store.h"

namespace hvd {
namespace {

class InterHostLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name =
        (std::filesystem::temp_directory_path() / "inter_host_loader.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  InterHostOptions options_{.rank = 3, .generation = 1, .job_key = "a key"};
  test::MemoryKvStore directory_;
  std::filesystem::path folder_;
};

TEST_F(InterHostLoader, AMissingLibraryIsASentence) {
  Result<std::unique_ptr<InterHostComm>> comm =
      OpenInterHostComm(options_, directory_, folder_.string());
  ASSERT_FALSE(comm.ok());
  EXPECT_EQ(comm.status().code(), Code::kUnsupported);
  const std::string& text = comm.status().message();
  EXPECT_NE(text.find("rank 3 cannot load libhvd_gloo.so"), std::string::npos) << text;
  EXPECT_NE(text.find("was built without Gloo"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST_F(InterHostLoader, SomethingElseOfThatNameIsASentence) {
  std::ofstream(folder_ / "libhvd_gloo.so") << "no library";
  const Status status = OpenInterHostComm(options_, directory_, folder_.string()).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("libgloo0"), std::string::npos) << status.message();
}

TEST_F(InterHostLoader, ALibraryOfAnotherBuildIsASentenceAndIsNotCalled) {
  Result<std::unique_ptr<InterHostComm>> comm =
      OpenInterHostComm(options_, directory_, HVD_OTHER_FOLDER);
  ASSERT_FALSE(comm.ok());
  EXPECT_NE(comm.status().message().find("libhvd_gloo.so is not of the same build as libhvd.so"),
            std::string::npos)
      << comm.status().message();
}

#ifdef HVD_GLOO_FOLDER
TEST_F(InterHostLoader, TheLibraryMakesAnInterHostCommOrSaysWhyNot) {
  options_.listen.addresses = {"127.0.0.1"};
  Result<std::unique_ptr<InterHostComm>> comm =
      OpenInterHostComm(options_, directory_, HVD_GLOO_FOLDER);
  ASSERT_TRUE(comm.ok()) << comm.status().message();
  EXPECT_EQ((*comm)->name(), "gloo");
  std::vector<uint32_t> alone = {3};
  float value = 4;
  EXPECT_TRUE((*comm)->Allreduce({{alone, 0}, 1, {}}, {}, &value, &value, 1).ok());
  comm->reset();
  options_.listen.addresses = {"no address"};
  EXPECT_EQ(OpenInterHostComm(options_, directory_, HVD_GLOO_FOLDER).status().message(),
            "'no address' is no numeric address");
}
#endif

}  // namespace
}  // namespace hvd
