#include "launcher/detached/shown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/base/text/format.h"
#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

using ShownRecordTest = TemporaryFolderTest;

TEST_F(ShownRecordTest, ThePlaceGrowsAndNothingElse) {
  const std::string path = folder_ + "/shown";
  ShownRecord record(path);
  EXPECT_EQ(record.Read(), LogPlace{});
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(record.Grow({123'456'789'012, 77}));
  ShownRecord other(path);
  EXPECT_TRUE(other.Grow({5, 1}));
  EXPECT_EQ(other.Read(), (LogPlace{123'456'789'012, 77}));
  EXPECT_TRUE(other.Grow({123'456'789'013, 78}));
  EXPECT_EQ(record.Read(), (LogPlace{123'456'789'013, 78}));
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST_F(ShownRecordTest, NonsenseIsTheBeginningAndIsReplaced) {
  const std::string path = folder_ + "/shown";
  for (const char* text : {"", "\n", "nonsense", "1", "1 x\n", " 1\n", "-1 2\n"}) {
    std::ofstream(path) << text;
    EXPECT_EQ(ShownRecord(path).Read(), LogPlace{}) << text;
    EXPECT_TRUE(ShownRecord(path).Grow({9, 2}));
    EXPECT_EQ(ShownRecord(path).Read(), (LogPlace{9, 2})) << text;
  }
}

TEST_F(ShownRecordTest, WhatAnotherOneGrowsIsNotRemoved) {
  const std::string path = folder_ + "/shown";
  ShownRecord record(path), other(path);
  EXPECT_TRUE(record.Grow({1, 0}));
  EXPECT_TRUE(other.Grow({2, 0}));
  record.Remove();
  EXPECT_EQ(other.Read(), (LogPlace{2, 0}));
  other.Remove();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(record.Grow({3, 0})) << "it is made again";
  EXPECT_EQ(other.Read(), (LogPlace{3, 0}));
}

TEST_F(ShownRecordTest, WhereItCannotBeMadeItSaysSo) {
  ShownRecord record(folder_ + "/missing/shown");
  EXPECT_FALSE(record.Grow({1, 0}));
  record.Remove();
}

TEST_F(ShownRecordTest, OwnRecordsArePrivateAndBounded) {
  const std::string jobs = folder_ + "/state/hvdrun/jobs", own = folder_ + "/state/hvdrun/shown";
  EXPECT_FALSE(OwnShownRecord(jobs, "../../x").ok());
  EXPECT_FALSE(OwnShownRecord("", "0123456789abcdef").ok());
  for (size_t job = 0; job < kMostOwnRecords + 5; ++job) {
    Result<ShownRecord> record = OwnShownRecord(jobs, Format("{:016x}", job));
    ASSERT_TRUE(record.ok()) << record.status().message();
    EXPECT_TRUE(record->Grow({job + 1, 0}));
    std::filesystem::last_write_time(
        own + "/" + Format("{:016x}", job),
        std::filesystem::file_time_type(std::chrono::seconds(1'000'000 + job)));
  }
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(own))
    names.push_back(entry.path().filename());
  EXPECT_EQ(names.size(), kMostOwnRecords);
  EXPECT_THAT(names, testing::Not(testing::Contains(Format("{:016x}", 4))));
  EXPECT_THAT(names, testing::Contains(Format("{:016x}", 5)));
  struct stat facts {};
  ASSERT_EQ(::stat(own.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
}

}  // namespace
}  // namespace hvd
