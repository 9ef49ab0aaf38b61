#include "launcher/tuning/tuning_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "runtime/base/read_file.h"
#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

RememberedTuning Found(uint64_t model = 0x1234) {
  return {.of = {{4, 4, 8}, "A CPU \"of\" ours", "--wait-spins 100", "0.1.0", model},
          .values = {{"chunk_kib", 512}},
          .gained = true,
          .gain = 0.06,
          .gain_low = 0.04,
          .gain_high = 0.08,
          .windows = 24,
          .found_at = 1'700'000'000};
}

class TuningMemoryTest : public TemporaryFolderTest {
 protected:
  std::string File(const TuningCase& of) const { return folder_ + "/new/" + IdOf(of) + ".json"; }
  void Damage(const std::string& text) {
    ASSERT_TRUE(memory_.Keep(Found()).ok());
    std::ofstream(File(Found().of)) << text;
  }

  TuningMemory memory_{folder_ + "/new"};
};

TEST_F(TuningMemoryTest, ReturnsTheResultOfTheSameCaseOnly) {
  EXPECT_FALSE(memory_.Find(Found().of)->has_value());
  ASSERT_TRUE(memory_.Keep(Found()).ok());
  const Result<std::optional<RememberedTuning>> found = memory_.Find(Found().of);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->of, Found().of);
  EXPECT_EQ((*found)->values, Found().values);
  EXPECT_DOUBLE_EQ((*found)->gain_low, 0.04);
  EXPECT_EQ((*found)->windows, 24U);
  EXPECT_FALSE(memory_.Find(Found(0x1235).of)->has_value());
  TuningCase fewer_cores = Found().of;
  fewer_cores.world.cores = 4;
  EXPECT_FALSE(memory_.Find(fewer_cores)->has_value());
  TuningCase faster_links = Found().of;
  faster_links.links = "100 Gbit/s";
  EXPECT_FALSE(memory_.Find(faster_links)->has_value());
}

TEST_F(TuningMemoryTest, AFileOfAnEarlierVersionIsNotDamaged) {
  ASSERT_TRUE(memory_.Keep(Found()).ok());
  Result<std::string> text = ReadFileWithin(File(Found().of), {});
  ASSERT_TRUE(text.ok());
  const size_t at = text->find("  \"links\": \"\",\n");
  ASSERT_NE(at, std::string::npos) << *text;
  text->erase(at, text->find('\n', at) + 1 - at);
  std::ofstream(File(Found().of)) << *text;
  EXPECT_THAT(memory_.All().damaged, SizeIs(0));
  EXPECT_EQ(memory_.All().results.begin()->second.of.links, "");
}

TEST_F(TuningMemoryTest, TheFileIsForItsOwnerOnly) {
  ASSERT_TRUE(memory_.Keep(Found()).ok());
  struct stat info = {};
  ASSERT_EQ(::stat(File(Found().of).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(TuningMemoryTest, ADamagedFileIsASentence) {
  for (const char* text : {"", "{", "[]", "{\"hvdrun\": 7}", "null", "{\"model\": \"zz\"}"}) {
    Damage(text);
    const Result<std::optional<RememberedTuning>> found = memory_.Find(Found().of);
    ASSERT_FALSE(found.ok()) << text;
    EXPECT_THAT(found.status().message(),
                AllOf(HasSubstr(File(Found().of)), HasSubstr("is not a result of tuning")));
    EXPECT_THAT(memory_.All().results, SizeIs(0));
    EXPECT_THAT(memory_.All().damaged, ElementsAre(found.status().message()));
  }
  EXPECT_TRUE(memory_.Keep(Found()).ok());  // mended by the next result
  EXPECT_TRUE(memory_.Find(Found().of)->has_value());
}

TEST_F(TuningMemoryTest, ForgetsOne) {
  ASSERT_TRUE(memory_.Keep(Found(1)).ok());
  ASSERT_TRUE(memory_.Keep(Found(2)).ok());
  EXPECT_THAT(memory_.All().results, SizeIs(2));
  EXPECT_TRUE(memory_.Forget(IdOf(Found(1).of)).ok());
  EXPECT_THAT(memory_.All().results, SizeIs(1));
  EXPECT_FALSE(memory_.Forget(IdOf(Found(1).of)).ok());
}

TEST_F(TuningMemoryTest, AFolderThatCannotBeMadeIsASentence) {
  std::ofstream(folder_ + "/file") << "";
  const TuningMemory memory(folder_ + "/file/tuning");
  const Status kept = memory.Keep(Found());
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(kept.message(), HasSubstr("/file/tuning cannot be made"));
  EXPECT_FALSE(memory.Find(Found().of)->has_value());
  EXPECT_THAT(memory.All().results, SizeIs(0));
  EXPECT_FALSE(TuningMemory("").Keep(Found()).ok());
}

TEST_F(TuningMemoryTest, JobsThatWriteAtOnceLeaveOneWholeResult) {
  const auto write = [&](double gain) {
    RememberedTuning found = Found();
    found.gain = gain;
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(memory_.Keep(found).ok());
  };
  std::thread one(write, 0.25), two(write, 0.5);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(memory_.Find(Found().of).ok());
  one.join();
  two.join();
  const Result<std::optional<RememberedTuning>> found = memory_.Find(Found().of);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_TRUE((*found)->gain == 0.25 || (*found)->gain == 0.5);
}

TEST(TuningFolder, IsInTheCacheOfTheUser) {
  const auto with = [](const char* cache, const char* home) {
    return TuningFolder([=](const char* name) -> std::optional<std::string> {
      const char* value = std::string(name) == "HOME" ? home : cache;
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
  };
  EXPECT_EQ(with("/c", "/h"), "/c/hvdrun/tuning");
  EXPECT_EQ(with(nullptr, "/h"), "/h/.cache/hvdrun/tuning");
  EXPECT_EQ(with("relative", "/h"), "/h/.cache/hvdrun/tuning");
  EXPECT_EQ(with(nullptr, nullptr), "");
}

TEST(PointOf, TakesOnlyValuesThatTheAxesHave) {
  const std::vector<TuneAxis> axes{
      {.name = "chunk_kib", .low = 16, .high = 2048, .initial = 128},
      {.name = "wait_spins", .low = 1, .high = 20'000, .initial = 400, .pinned = true},
      {.name = "wait_yields", .low = 1, .high = 2000, .initial = 50}};
  RememberedTuning found = Found();
  found.values = {{"chunk_kib", 512}, {"wait_spins", 7}, {"wait_yields", 1e9}};
  EXPECT_THAT(PointOf(found, axes), ElementsAre(512, 400, 50));
}

TEST(ProcessorModel, IsALine) { EXPECT_EQ(ProcessorModel().find('\n'), std::string::npos); }

}  // namespace
}  // namespace hvd
