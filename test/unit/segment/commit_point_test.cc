#include "runtime/segment/commit_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "runtime/segment/shared_memory.h"

namespace hvd {
namespace {

constexpr Duration kNoLimit{-1};
constexpr uint32_t kGrace = 30'000;

// The page of one host.
struct Host {
  explicit Host(uint32_t ranks) {
    const size_t bytes = JobPage::BytesFor(ranks);
    memory = Mapping::Map(CreateSharedMemory("hvd-test", bytes).value().get(), bytes).value();
    page = JobPage::Format(memory.data(), ranks, 1);
  }
  Mapping memory;
  JobPage page;
};

void AwaitCommits(const JobPage& page, uint32_t rank, uint64_t commits) {
  while (page.Commits(rank) < commits) std::this_thread::yield();
}

TEST(CommitPoint, ARankGoesOnWhileNothingHasHappened) {
  Host host(2);
  CommitPoint commits(host.page, 1);
  for (uint64_t n = 1; n <= 3; ++n) {
    EXPECT_EQ(commits.Commit(kNoLimit).value(), 0u);
    EXPECT_EQ(host.page.Commits(1), n);
  }
  EXPECT_EQ(host.page.Commits(0), 0u);
  EXPECT_EQ(host.page.MostCommits(), 3u);
  EXPECT_FALSE(commits.stopping());
}

TEST(CommitPoint, AHeldRankActsAtTheCommitThatWasChosen) {
  Host host(1);
  CommitPoint commits(host.page, 0);
  ASSERT_TRUE(commits.Commit(kNoLimit).ok());
  host.page.HoldCommits();
  host.page.ActAt(host.page.MostCommits() + 2, kUpdateAdded, 0);  // another host had one more
  EXPECT_EQ(commits.Commit(kNoLimit).value(), 0u);
  EXPECT_EQ(commits.Commit(kNoLimit).value(), kUpdateAdded);
  EXPECT_FALSE(commits.stopping());
  EXPECT_EQ(commits.Commit(kNoLimit).value(), kUpdateAdded) << "a rank that went on hears it again";
}

TEST(CommitPoint, AStopIsKnownFromItsCommitOn) {
  Host host(1);
  CommitPoint commits(host.page, 0);
  host.page.HoldCommits();
  host.page.ActAt(2, kUpdateStop | kUpdateRemoved, kGrace);
  EXPECT_EQ(commits.Commit(kNoLimit).value(), 0u);
  EXPECT_FALSE(commits.stopping());
  EXPECT_EQ(commits.Commit(kNoLimit).value(), kUpdateStop | kUpdateRemoved);
  EXPECT_TRUE(commits.stopping());
  EXPECT_EQ(commits.stop_grace(), std::chrono::milliseconds(kGrace));
}

TEST(CommitPoint, AWaitThatRanOutOfItsTimeIsTakenUpAgain) {
  Host host(1);
  CommitPoint commits(host.page, 0);
  host.page.HoldCommits();
  EXPECT_EQ(commits.Commit(Duration::zero()).status().code(), Code::kInProgress);
  EXPECT_EQ(commits.Commit(std::chrono::milliseconds(1)).status().code(), Code::kInProgress);
  EXPECT_EQ(host.page.Commits(0), 1u) << "one commit, whatever its number of calls";
  host.page.ActAt(1, kUpdateAdded, 0);
  EXPECT_EQ(commits.Commit(Duration::zero()).value(), kUpdateAdded);
  EXPECT_EQ(host.page.Commits(0), 1u);
}

TEST(CommitPoint, ABrokenWorldEndsTheWaitAndLaterCommits) {
  Host host(2);
  CommitPoint commits(host.page, 0);
  host.page.HoldCommits();
  Status ended;
  std::thread waits([&] { ended = commits.Commit(kNoLimit).status(); });
  AwaitCommits(host.page, 0, 1);
  host.page.Break("rank 1 died");
  waits.join();
  EXPECT_EQ(ended.code(), Code::kAborted);
  EXPECT_EQ(ended.message(), "rank 1 died");
  EXPECT_EQ(commits.Commit(kNoLimit).status().message(), "rank 1 died");
}

TEST(CommitPoint, AShutdownEndsTheWaitWithItsFirstSentence) {
  Host host(1);
  CommitPoint commits(host.page, 0);
  host.page.HoldCommits();
  Status ended;
  std::thread waits([&] { ended = commits.Commit(kNoLimit).status(); });
  AwaitCommits(host.page, 0, 1);
  commits.Close("the agent is gone");
  waits.join();
  commits.Close("hvd.shutdown() was called");
  EXPECT_EQ(ended.message(), "the agent is gone");
  EXPECT_EQ(commits.Commit(kNoLimit).status().message(), "the agent is gone");
}

TEST(CommitPointDeathTest, ACommitThatNoRankHas) {
  Host host(1);
  EXPECT_DEATH(host.page.ActAt(0, kUpdateStop, 0), "commit > 0");
  EXPECT_DEATH(host.page.ActAt(1, 0, 0), "update != 0");
}

// Ranks on several hosts that commit as fast as they can, each in a thread, and the agents and the
// driver of the job in another.
class World {
 public:
  World(uint32_t hosts, uint32_t ranks) {
    for (uint32_t h = 0; h < hosts; ++h) hosts_.emplace_back(ranks);
    acted_at_.resize(size_t{hosts} * ranks);
    for (size_t n = 0; n < acted_at_.size(); ++n) {
      threads_.emplace_back([this, n, ranks] {
        const JobPage& page = hosts_[n / ranks].page;
        CommitPoint commits(page, static_cast<uint32_t>(n % ranks));
        uint32_t update = 0;
        for (; update == 0; ++acted_at_[n]) update = commits.Commit(kNoLimit).value();
        EXPECT_EQ(update, kUpdateAdded);
      });
    }
  }
  ~World() { Join(); }

  void AwaitFirstCommits() {
    for (Host& host : hosts_)
      for (uint32_t r = 0; r < host.page.local_size(); ++r) AwaitCommits(host.page, r, 1);
  }
  // Gives the commit that was chosen.
  uint64_t HoldAndAct(std::mt19937& random) {
    uint64_t most = 0;
    std::vector<JobPage> pages;
    for (Host& host : hosts_) pages.push_back(host.page);
    std::ranges::shuffle(pages, random);
    for (const JobPage& page : pages) {
      page.HoldCommits();
      most = std::max(most, page.MostCommits());
    }
    for (const JobPage& page : pages) page.ActAt(most + 1, kUpdateAdded, 0);
    return most + 1;
  }
  void Join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  const std::vector<uint64_t>& acted_at() const { return acted_at_; }

 private:
  std::vector<Host> hosts_;
  std::vector<uint64_t> acted_at_;
  std::vector<std::thread> threads_;
};

TEST(CommitPoint, AllRanksOfAllHostsActAtTheSameCommit) {
  constexpr uint32_t kSeed = 20240611;
  std::mt19937 random(kSeed);
  SCOPED_TRACE(kSeed);
  for (int round = 0; round < 40; ++round) {
    World world(1 + round % 3, 1 + round % 2);
    if (round % 2 == 0) world.AwaitFirstCommits();
    const uint64_t commit = world.HoldAndAct(random);
    world.Join();
    for (uint64_t acted_at : world.acted_at()) EXPECT_EQ(acted_at, commit) << "round " << round;
  }
}

}  // namespace
}  // namespace hvd
