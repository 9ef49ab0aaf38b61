// The file is whole JSON after every write, whatever was cut off.
#include "runtime/trace/trace_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

using Json = nlohmann::json;

class TraceFileTest : public TemporaryFolderTest {
 protected:
  std::string Text(const std::string& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::string Event(int number, size_t bytes = 10) {
    return R"({"n":)" + std::to_string(number) + R"(,"x":")" + std::string(bytes, 'x') + "\"}";
  }
};

TEST_F(TraceFileTest, IsWholeAfterEachFlushAndExactAtTheEnd) {
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(Json::parse(Text(path_)), Json::array());
  size_t events = 0;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 200; ++i)
      ASSERT_TRUE((*file)->Add(Event(static_cast<int>(events++), round * 3)).ok());
    ASSERT_TRUE((*file)->Flush().ok());
    const Json now = Json::parse(Text(path_));
    ASSERT_EQ(now.size(), events);
    EXPECT_EQ(now.back()["n"], events - 1);
  }
  ASSERT_TRUE((*file)->Finish(R"({"last":true})").ok());
  const std::string text = Text(path_);
  EXPECT_EQ(Json::parse(text).size(), events + 1);
  EXPECT_TRUE(text.ends_with("\n]"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);  // no .part
}

// The bytes that a kill leaves: of a write that crossed a page, the first page alone.
TEST_F(TraceFileTest, NoWriteCrossesAPage) {
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok());
  std::string before = Text(path_);
  for (int i = 0; i < 80; ++i) {
    ASSERT_TRUE((*file)->Add(Event(i, static_cast<size_t>(i) * 47 % 3900)).ok());
    ASSERT_TRUE((*file)->Flush().ok());
    const std::string after = Text(path_);
    if (after.size() == before.size()) {
      const auto [first, ignored] = std::mismatch(after.begin(), after.end(), before.begin());
      const auto last = std::mismatch(after.rbegin(), after.rend(), before.rbegin()).first.base();
      EXPECT_EQ((first - after.begin()) / 4096, (last - 1 - after.begin()) / 4096) << i;
    }
    before = after;
  }
}

TEST_F(TraceFileTest, AtItsLimitItIsWholeAndHasRoomForTheLastWords) {
  auto file = TraceFile::Create(path_, 300000);
  ASSERT_TRUE(file.ok());
  int events = 0;
  Status added;
  while ((added = (*file)->Add(Event(events, 100))).ok()) ++events;
  EXPECT_NE(added.message().find("limit of 300000 bytes"), std::string::npos) << added.message();
  ASSERT_TRUE((*file)->Finish(R"({"last":true})").ok());
  const Json all = Json::parse(Text(path_));
  EXPECT_EQ(all.size(), static_cast<size_t>(events) + 1);
  EXPECT_LE(std::filesystem::file_size(path_), 300000U);
  EXPECT_GT(events, 1000);
}

// As on a disk that is almost full: there is room for a few bytes, but not for a file.
TEST_F(TraceFileTest, WithoutRoomForItNothingIsMadeAndWhatWasThereStays) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto create_without_room = [&] {
    const rlimit few{4096, before.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
    EXPECT_FALSE(TraceFile::Create(path_).ok());
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  };
  create_without_room();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  std::ofstream(path_) << "[1]";
  create_without_room();
  EXPECT_EQ(Text(path_), "[1]");
  std::signal(SIGXFSZ, SIG_DFL);
}

TEST_F(TraceFileTest, APathThatCannotBeWrittenIsRefusedInOneSentence) {
  EXPECT_NE(TraceFile::Check(folder_).message().find("it is a directory"), std::string::npos);
  const Status missing = TraceFile::Check(folder_ + "/no/such.json");
  EXPECT_EQ(missing.code(), Code::kInvalidArgument);
  EXPECT_NE(missing.message().find("/no/such.json cannot be written"), std::string::npos);
  EXPECT_TRUE(TraceFile::Check(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));  // it has left nothing
  EXPECT_EQ(TraceFile::Check("/dev/null").code(), Code::kInvalidArgument);
}

// Of this user; links of strangers are in output_file_test.cc.
TEST_F(TraceFileTest, ThroughALinkTheFileThatItNamesIsReplaced) {
  std::filesystem::create_directory(folder_ + "/disk");
  std::filesystem::create_symlink("disk/t.json", path_);
  {
    auto file = TraceFile::Create(path_);
    ASSERT_TRUE(file.ok()) << file.status().message();
  }
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_EQ(Json::parse(Text(folder_ + "/disk/t.json")), Json::array());
}

TEST_F(TraceFileTest, ALinkUnderTheNameOfItsPartIsNotFollowed) {
  std::ofstream(folder_ + "/victim") << "precious";
  std::filesystem::create_symlink("victim", path_ + ".part");
  {
    auto file = TraceFile::Create(path_);
    ASSERT_TRUE(file.ok()) << file.status().message();
  }
  EXPECT_EQ(Text(folder_ + "/victim"), "precious");
}

TEST_F(TraceFileTest, AnEarlierFileGoesAwayAtOnce) {
  std::ofstream(path_) << std::string(1'000'000, 'x');
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(Json::parse(Text(path_)), Json::array());
}

}  // namespace
}  // namespace hvd
