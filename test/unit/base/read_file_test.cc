#include "runtime/base/read_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr ReadLimits kShort{size_t{1} << 20, std::chrono::milliseconds(20)};

class ReadFileWithinTest : public testing::Test {
 protected:
  ReadFileWithinTest() {
    char name[] = "/tmp/read_file_test.XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~ReadFileWithinTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }
  std::string Fifo() {
    std::string path = folder_ + "/fifo";
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  static std::string Refusal(const Result<std::string>& read) {
    return read.ok() ? "it was read" : read.status().message();
  }

  std::string folder_;
};

TEST_F(ReadFileWithinTest, RegularFiles) {
  const std::string bytes(200'000, '\0');
  EXPECT_EQ(*ReadFileWithin(Write("zeros", bytes), {}), bytes);
  EXPECT_EQ(*ReadFileWithin(Write("empty", ""), {}), "");
  EXPECT_EQ(*ReadFileWithin("/dev/null", kShort), "");
}

TEST_F(ReadFileWithinTest, WhatCannotBeRead) {
  EXPECT_EQ(Refusal(ReadFileWithin(folder_ + "/none", {})),
            "cannot be read: No such file or directory");
  EXPECT_EQ(Refusal(ReadFileWithin(folder_, {})), "is a directory");
}

TEST_F(ReadFileWithinTest, WhatIsTooLongOrNeverEnds) {
  EXPECT_EQ(Refusal(ReadFileWithin("/dev/zero", {size_t{1} << 20, std::chrono::hours(1)})),
            "is longer than 1 MiB");
  const std::string exact(size_t{1} << 20, 'x');
  EXPECT_TRUE(ReadFileWithin(Write("exact", exact), {exact.size(), std::chrono::hours(1)}).ok());
  EXPECT_EQ(
      Refusal(ReadFileWithin(Write("longer", exact + "x"), {exact.size(), std::chrono::hours(1)})),
      "is longer than 1 MiB");
}

TEST_F(ReadFileWithinTest, APipeThatNobodyWritesTo) {
  const std::string path = Fifo();
  EXPECT_EQ(Refusal(ReadFileWithin(path, kShort)),
            "has not ended within 1 s: does anything write into it?");
  UniqueFd writer(::open(path.c_str(), O_RDWR | O_NONBLOCK));
  ASSERT_EQ(::write(writer.get(), "some", 4), 4);
  EXPECT_EQ(Refusal(ReadFileWithin(path, kShort)),
            "has not ended within 1 s: does anything write into it?");
}

TEST_F(ReadFileWithinTest, APipeThatEnds) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd read(ends[0]);
  ASSERT_EQ(::write(ends[1], "A=1\n", 4), 4);
  ::close(ends[1]);
  EXPECT_EQ(*ReadFileWithin("/dev/fd/" + std::to_string(read.get()), {}), "A=1\n");
}

}  // namespace
}  // namespace hvd
