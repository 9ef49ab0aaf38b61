#include "runtime/backends/cross_loader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/fakes/memory_directory.h"

namespace hvd {
namespace {

class CrossLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "cross_loader.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  CrossOptions options_{.rank = 3, .epoch = 1, .job_key = "a key"};
  test::MemoryDirectory directory_;
  std::filesystem::path folder_;
};

TEST_F(CrossLoader, AMissingLibraryIsASentence) {
  Result<std::unique_ptr<Cross>> cross = OpenCross(options_, directory_, folder_.string());
  ASSERT_FALSE(cross.ok());
  EXPECT_EQ(cross.status().code(), Code::kUnsupported);
  const std::string& text = cross.status().message();
  EXPECT_NE(text.find("rank 3 cannot load libhvd_gloo.so"), std::string::npos) << text;
  EXPECT_NE(text.find("libgloo0"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST_F(CrossLoader, SomethingElseOfThatNameIsASentence) {
  std::ofstream(folder_ / "libhvd_gloo.so") << "no library";
  EXPECT_EQ(OpenCross(options_, directory_, folder_.string()).status().code(), Code::kUnsupported);
}

TEST_F(CrossLoader, ALibraryOfAnotherBuildIsASentenceAndIsNotCalled) {
  Result<std::unique_ptr<Cross>> cross = OpenCross(options_, directory_, HVD_OTHER_FOLDER);
  ASSERT_FALSE(cross.ok());
  EXPECT_NE(cross.status().message().find("libhvd_gloo.so is not of the same build as libhvd.so"),
            std::string::npos)
      << cross.status().message();
}

#ifdef HVD_GLOO_FOLDER
TEST_F(CrossLoader, TheLibraryMakesACrossOrSaysWhyNot) {
  options_.listen.addresses = {"127.0.0.1"};
  Result<std::unique_ptr<Cross>> cross = OpenCross(options_, directory_, HVD_GLOO_FOLDER);
  ASSERT_TRUE(cross.ok()) << cross.status().message();
  EXPECT_EQ((*cross)->name(), "gloo");
  std::vector<uint32_t> alone = {3};
  float value = 4;
  EXPECT_TRUE((*cross)->Allreduce({{alone, 0}, 1, {}}, {}, &value, &value, 1).ok());
  cross->reset();
  options_.listen.addresses = {"no address"};
  EXPECT_EQ(OpenCross(options_, directory_, HVD_GLOO_FOLDER).status().message(),
            "'no address' is no numeric address");
}
#endif

}  // namespace
}  // namespace hvd
