// A folder of one test for the file that it writes; gone when the test is over.
#ifndef HVD_TEST_FAKES_TEMPORARY_FOLDER_H_
#define HVD_TEST_FAKES_TEMPORARY_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace hvd {

class TemporaryFolderTest : public testing::Test {
 protected:
  TemporaryFolderTest() {
    std::string name = testing::TempDir() + "hvdXXXXXX";
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ + "/out.json";
  }
  ~TemporaryFolderTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_, path_;
};

}  // namespace hvd

#endif  // HVD_TEST_FAKES_TEMPORARY_FOLDER_H_
