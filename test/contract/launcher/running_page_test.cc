// The page of the generation that runs, with its real watch.
#include "launcher/generation/running_page.h"

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "runtime/segment/mapped_page.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

class RunningPageTest : public testing::Test {
 protected:
  RunningPage::Hooks Hooks() {
    RunningPage::Hooks hooks;
    hooks.on_death = [this](uint32_t rank, uint64_t generation) {
      deaths_.emplace_back(rank, generation);
    };
    hooks.on_damage = [this](uint32_t rank, uint64_t generation) {
      damage_.emplace_back(rank, generation);
    };
    hooks.on_header_damage = [this] { ++header_damage_; };
    return hooks;
  }
  // As a rank has it.
  MappedPage Mapped() {
    const GenerationPage& page = *page_.get();
    Result<MappedPage> mapped = MapPage(page.fd()->get(), page.bytes());
    return std::move(*mapped);
  }
  // Until something was told, or for as long as the slowest look takes twice.
  void Turn() {
    io_.restart();
    const auto end = std::chrono::steady_clock::now() + Scaled(std::chrono::seconds(2));
    while (deaths_.empty() && damage_.empty() && header_damage_ == 0 &&
           std::chrono::steady_clock::now() < end)
      io_.run_for(std::chrono::milliseconds(5));
  }

  asio::io_context io_;
  std::vector<std::pair<uint32_t, uint64_t>> deaths_, damage_;
  int header_damage_ = 0;
  RunningPage page_{io_, Hooks()};
};

TEST_F(RunningPageTest, HasOnePageAtATime) {
  EXPECT_EQ(page_.get(), nullptr);
  EXPECT_EQ(page_.generation(), 0U);
  ASSERT_TRUE(page_.Make(3, 2).ok());
  EXPECT_EQ(page_.generation(), 3U);
  EXPECT_EQ(page_.Of(3), page_.get());
  EXPECT_EQ(page_.Of(2), nullptr);
  ASSERT_TRUE(page_.Make(4, 1).ok());
  EXPECT_EQ(page_.Of(3), nullptr);
  page_.Drop();
  EXPECT_EQ(page_.generation(), 0U);
}

TEST_F(RunningPageTest, BreaksOnceAndOnlyItsOwnGeneration) {
  EXPECT_FALSE(page_.Break(1, "there is none"));
  ASSERT_TRUE(page_.Make(3, 1).ok());
  EXPECT_FALSE(page_.Break(2, "another one"));
  EXPECT_FALSE(page_.get()->broken());
  EXPECT_TRUE(page_.Break(3, "first"));
  EXPECT_FALSE(page_.Break(3, "second"));
  EXPECT_EQ(Mapped().page.broken_text(), "first");
}

TEST_F(RunningPageTest, HoldsCommitsOfItsOwnGenerationOnly) {
  EXPECT_EQ(page_.HoldCommits(3), 0U);
  ASSERT_TRUE(page_.Make(3, 1).ok());
  page_.ActAt(2, 1, 1, 0);  // of another: nothing happens
  EXPECT_EQ(page_.HoldCommits(3), 0U) << "no rank has passed one";
}

TEST_F(RunningPageTest, ADeathIsToldWithItsGeneration) {
  ASSERT_TRUE(page_.Make(5, 2).ok());
  const MappedPage mapped = Mapped();
  constexpr uint32_t kOwnerDied = 0x40000000;
  mapped.page.rank(1).alive.store(kOwnerDied);
  Turn();
  ASSERT_EQ(deaths_.size(), 1U);
  EXPECT_EQ(deaths_[0], std::make_pair(uint32_t{1}, uint64_t{5}));
}

TEST_F(RunningPageTest, AWordThatNobodyWritesIsDamage) {
  ASSERT_TRUE(page_.Make(5, 1).ok());
  const MappedPage mapped = Mapped();
  mapped.page.rank(0).alive.store(1);
  Turn();
  ASSERT_EQ(damage_.size(), 1U);
  EXPECT_EQ(damage_[0], std::make_pair(uint32_t{0}, uint64_t{5}));
}

TEST_F(RunningPageTest, AnOverwrittenHeaderIsTold) {
  ASSERT_TRUE(page_.Make(5, 1).ok());
  const MappedPage mapped = Mapped();
  mapped.page.header().broken.store(1);
  Turn();
  EXPECT_EQ(header_damage_, 1);
}

}  // namespace
}  // namespace hvd
