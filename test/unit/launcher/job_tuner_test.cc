// JobTuner beside a played rank 0: its page and trace ring are real, its steps are made up.
#include "launcher/tuning/job_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "autotune/search_space.h"
#include "launcher/tuning/tuning_log.h"
#include "runtime/base/read_file.h"
#include "runtime/base/unique_fd.h"
#include "runtime/trace/recorder.h"
#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr TunedWorld kOneHost{.size = 2, .local_size = 2, .cores = 2};
constexpr TunedWorld kTwoHosts{.size = 2, .local_size = 1, .cores = 2};
constexpr int kMostWindows = 100;

// Milliseconds of a step, by the settings of the page.
using StepTime = std::function<double(const TunedSettings&)>;

// The larger the chunk, the faster the step: 20 ms with the default of 128 KiB, 12 with 2 MiB.
double LargeChunksAreFast(const TunedSettings& settings) {
  const uint32_t chunk = settings.chunk_kib.load();
  return 20 - 2 * std::log2(chunk == 0 ? 1 : chunk / 128.0);
}

class JobTunerTest : public TemporaryFolderTest {
 protected:
  JobTunerTest() { Restart(); }

  // Another run, with a page and an agent of its own.
  void Restart() {
    tuner_.reset();
    const size_t bytes = JobPage::BytesFor(2);
    fd_ = CreateSharedMemory("hvd-test", bytes).value();
    memory_ = Mapping::Map(fd_.get(), bytes).value();
    page_ = JobPage::Format(memory_.data(), 2, 1);
    recorder_ = std::make_unique<Recorder>(page_.trace(0), TraceClock::kSteadyNs);
    now_ = static_cast<uint64_t>(ReadTickPair().steady_ns) + 1'000'000;
    said_.clear();
    notes_ = 0;
    tuner_ = std::make_unique<JobTuner>(
        io_, TuningMemory(folder_),
        [this](const std::string& sentence) { said_.push_back(sentence); },
        [this](std::span<const TraceRecord>) { ++notes_; });
  }

  void Begin(const TunedWorld& world, std::vector<std::string> variables = {}) {
    variables.emplace_back("HOROVOD_AUTOTUNE=1");
    variables.emplace_back("HOROVOD_AUTOTUNE_WARMUP_SAMPLES=1");
    tuner_->Begin(*TuningSettingsOf(std::move(variables), folder_));
    tuner_->UsePage(fd_.get(), memory_.size(), world, 0, "");
  }

  void Step(double ms, uint32_t status = 0) {
    for (const uint32_t id : {1U, 2U, 3U}) {
      now_ += static_cast<uint64_t>(ms * 1e6 / 3);
      recorder_->Write({.stamp = now_,
                        .kind = TraceKind::kDone,
                        .id = id,
                        .bytes = id * 1'000'000,
                        .status = status});
    }
  }

  // Windows of five steps, each read by the tuner before the next.
  void Train(const StepTime& time, int windows) {
    for (int w = 0; w < windows; ++w) {
      for (int i = 0; i < 5; ++i) Step(time(settings()));
      io_.run_one();
    }
  }
  // A step, read by an agent that is as late as it really is: when it changes the settings, the
  // next step has begun. Of less than 20 ms, after which the tuner reads again.
  void StepBesideTheAgent(double ms) {
    Step(ms);
    const int windows = notes_;
    io_.run_one();
    if (notes_ > windows) now_ = std::max(now_, static_cast<uint64_t>(ReadTickPair().steady_ns));
  }
  void TrainUntilSaid(const StepTime& time, const std::string& word) {
    for (int w = 0; w < kMostWindows && !Said(word); ++w) Train(time, 1);
    ASSERT_TRUE(Said(word)) << word;
  }
  bool Said(const std::string& word) const {
    return ::testing::Value(said_, Contains(HasSubstr(word)));
  }
  TunedSettings& settings() { return page_.header().tuned; }

  UniqueFd fd_;
  Mapping memory_;
  JobPage page_;
  std::unique_ptr<Recorder> recorder_;
  uint64_t now_ = 0;
  asio::io_context io_;
  std::vector<std::string> said_;
  int notes_ = 0;  // windows that the timeline was told of
  std::unique_ptr<JobTuner> tuner_;
};

TEST_F(JobTunerTest, FindsFasterSettingsAndLeavesThemInThePage) {
  Begin(kOneHost);
  TrainUntilSaid(LargeChunksAreFast, "tuning found ");
  EXPECT_THAT(said_.back(), StartsWith("tuning found --chunk-kib "));
  EXPECT_THAT(said_.back(), HasSubstr("faster than with the defaults"));
  EXPECT_LT(LargeChunksAreFast(settings()), 16);
  EXPECT_EQ(settings().yields.load(), 0U) << "without effect in this world";
  EXPECT_EQ(settings().fusion.load(), 0U);
  EXPECT_GT(notes_, 5);
}

TEST_F(JobTunerTest, AJobThatIsTooShortForAWindowLeavesALogWithItsHead) {
  Begin(kOneHost, {"HOROVOD_AUTOTUNE_LOG=tuning.csv"});
  const Result<std::string> text = ReadFileWithin(folder_ + "/tuning.csv", {});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, TuningHeader());
  // Another generation, or a world in which nothing is tuned, does not begin it again.
  tuner_->UsePage(fd_.get(), memory_.size(), {.size = 1, .local_size = 1, .cores = 2}, 0, "");
  EXPECT_EQ(*ReadFileWithin(folder_ + "/tuning.csv", {}), TuningHeader());
}

TEST_F(JobTunerTest, ANextRunVerifiesTheResultInAFewWindows) {
  Begin(kOneHost);
  TrainUntilSaid(LargeChunksAreFast, "tuning found ");
  const int first = notes_;
  Restart();
  Begin(kOneHost);
  TrainUntilSaid(LargeChunksAreFast, "tuning found ");
  EXPECT_TRUE(Said("tuning starts from --chunk-kib ")) << ::testing::PrintToString(said_);
  EXPECT_LE(notes_, 8);
  EXPECT_LT(notes_, first);
}

// The step in which settings change is not measured, but it is one of the window's. So a search of
// 16 windows takes 80 steps, and the first few show what a step is.
TEST_F(JobTunerTest, ByDefaultASearchIsOverAfter80Steps) {
  constexpr int kWarmUp = 5, kToKnowAStep = 4;
  Begin(kOneHost);
  std::mt19937_64 random(5);
  int steps = 0;
  for (; steps < 200 && !Said("tuning found "); ++steps) {
    // Four of them are never shorter than the 50 ms of a window.
    const double ms = 0.4 * LargeChunksAreFast(settings()) + 10;
    StepBesideTheAgent(ms * std::exp(0.02 * NormalRandom(random)));
  }
  EXPECT_TRUE(Said("faster than with the defaults")) << ::testing::PrintToString(said_);
  EXPECT_LE(steps, 80 + kWarmUp + kToKnowAStep);
}

TEST_F(JobTunerTest, SettingsOfTheUserAreLeftAlone) {
  Begin(kOneHost, {"HVD_CHUNK_KIB=64"});
  Train([](const TunedSettings&) { return 20; }, 20);
  EXPECT_EQ(settings().chunk_kib.load(), 0U);
  EXPECT_NE(settings().spins.load(), 0U);
}

TEST_F(JobTunerTest, NothingToChooseIsOneSentence) {
  Begin({.size = 1, .local_size = 1, .cores = 2});
  Train(LargeChunksAreFast, 5);
  EXPECT_TRUE(Said("nothing is tuned: a world of one rank"));
  Restart();
  Begin(kOneHost, {"HVD_CHUNK_KIB=64", "HVD_WAIT_SPINS=1", "HVD_WAIT_YIELDS=1"});
  Train(LargeChunksAreFast, 5);
  EXPECT_TRUE(Said("nothing is tuned: all settings that have an effect were given"));
  EXPECT_EQ(notes_, 0);
  EXPECT_EQ(settings().chunk_kib.load(), 0U);
}

TEST_F(JobTunerTest, CollectivesThatFailMakeNoSteps) {
  Begin(kOneHost);
  for (int w = 0; w < 10; ++w) {
    for (int i = 0; i < 5; ++i) Step(20, 1);
    io_.run_one();
  }
  EXPECT_EQ(notes_, 0);
}

TEST_F(JobTunerTest, APageThatIsNoneIsNotTuned) {
  tuner_->Begin(*TuningSettingsOf({"HOROVOD_AUTOTUNE=1"}, folder_));
  page_.header().layout_version += 1;
  tuner_->UsePage(fd_.get(), memory_.size(), kOneHost, 0, "");
  Train([](const TunedSettings&) { return 20; }, 5);
  EXPECT_EQ(notes_, 0);
  EXPECT_EQ(settings().chunk_kib.load(), 0U);
}

// The cost of a search for its ranks, counted: a rank is not woken, sends nothing and records
// nothing more than without; it reads settings from a page that is there anyway.
TEST_F(JobTunerTest, ASearchWakesNoRankAndAsksForNoMoreRecords) {
  Begin(kOneHost);
  for (int w = 0; w < kMostWindows && !Said("tuning found "); ++w) {
    Train([](const TunedSettings&) { return 20; }, 1);
    ASSERT_EQ(recorder_->wanted(), 0U) << "window " << w;
  }
  EXPECT_TRUE(Said("no measurable gain")) << ::testing::PrintToString(said_);
  for (uint32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(page_.rank(r).bell.word.load(), 0U);
    EXPECT_EQ(page_.rank(r).runtime_bell.word.load(), 0U);
  }
  EXPECT_EQ(page_.header().broken.load(), 0U);
}

TEST_F(JobTunerTest, BetweenHostsRankZeroRecordsMoreInTheWarmUpAlone) {
  Begin(kTwoHosts);
  EXPECT_EQ(recorder_->wanted(), kTraceForTuner);
  Train([](const TunedSettings&) { return 20; }, 6);
  EXPECT_EQ(recorder_->wanted(), 0U);
}

TEST_F(JobTunerTest, ASearchThatIsStoppedAsksForNoRecords) {
  Begin(kTwoHosts);
  tuner_->Rest();
  EXPECT_EQ(recorder_->wanted(), 0U);
  Train(LargeChunksAreFast, 3);
  EXPECT_EQ(notes_, 0);
}

}  // namespace
}  // namespace hvd
