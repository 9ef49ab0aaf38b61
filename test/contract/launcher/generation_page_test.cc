// A rank that dies while it holds its robust futex in the page is noticed, whatever kills it; one
// that leaves is not.
#include "launcher/generation/generation_page.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "test/support/deadline.h"

namespace hvd {
namespace {

struct Deaths {
  void Add(uint32_t rank) {
    std::lock_guard lock(mutex);
    ranks.push_back(rank);
    changed.notify_all();
  }
  bool Wait(size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kDeadline, [&] { return ranks.size() >= count; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<uint32_t> ranks;
};

// A process that takes part in the page as `rank`, then does what `how` says.
pid_t Rank(const GenerationPage& page, uint32_t rank, bool leave) {
  int ready[2];
  if (::pipe(ready) != 0) return -1;
  pid_t pid = ::fork();
  if (pid == 0) {
    AliveMark mark;
    if (!mark.Hold(page.page().rank(rank).alive).ok()) ::_exit(1);
    if (leave) mark.Release();
    (void)!::write(ready[1], "x", 1);
    if (leave) ::_exit(0);
    ::pause();
  }
  char c;
  EXPECT_EQ(::read(ready[0], &c, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  return pid;
}

TEST(GenerationPage, NoticesEachDeathOnceAndNoLeave) {
  Deaths deaths;
  Result<std::unique_ptr<GenerationPage>> page =
      GenerationPage::Make(3, 3, [&](uint32_t rank) { deaths.Add(rank); });
  ASSERT_TRUE(page.ok());
  EXPECT_EQ((*page)->generation(), 3u);
  EXPECT_EQ((*page)->bytes(), JobPage::BytesFor(3));
  pid_t leaver = Rank(**page, 0, true), victim = Rank(**page, 1, false),
        second = Rank(**page, 2, false);
  ::waitpid(leaver, nullptr, 0);
  ::kill(victim, SIGKILL);
  ASSERT_TRUE(deaths.Wait(1));
  ::kill(second, SIGKILL);
  ASSERT_TRUE(deaths.Wait(2));
  ::waitpid(victim, nullptr, 0);
  ::waitpid(second, nullptr, 0);
  page->reset();
  EXPECT_EQ(deaths.ranks, std::vector<uint32_t>({1, 2}));
}

TEST(GenerationPage, KnowsWhoseCollectivesFailedBecauseOfOthers) {
  auto page = GenerationPage::Make(3, 2, [](uint32_t) {});
  ASSERT_TRUE(page.ok());
  EXPECT_FALSE((*page)->HadFailed(1));
  (*page)->page().rank(1).last.failed.store(1, std::memory_order_release);
  EXPECT_TRUE((*page)->HadFailed(1));
  EXPECT_FALSE((*page)->HadFailed(0));
}

std::span<std::atomic<uint32_t>> WordsOf(const GenerationPage& page) {
  return {reinterpret_cast<std::atomic<uint32_t>*>(&page.page().header()),
          page.bytes() / sizeof(uint32_t)};
}

std::unique_ptr<GenerationPage> PageOfTwo() {
  Result<std::unique_ptr<GenerationPage>> made = GenerationPage::Make(7, 2, [](uint32_t) {});
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

// The rings alone are most of the page, and nothing of the agent's.
TEST(GenerationPage, NoStrayWordLeadsItAstray) {
  std::unique_ptr<GenerationPage> page = PageOfTwo();
  std::span<std::atomic<uint32_t>> words = WordsOf(*page);
  const size_t facts = offsetof(PageHeader, broken) / sizeof(uint32_t);
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] ^= 0xffffffffU;
    EXPECT_EQ(page->HeaderIsSound(), i > facts) << "word " << i;
    EXPECT_EQ(page->generation(), 7U);
    EXPECT_FALSE(page->broken());
    for (uint32_t rank : {0U, 1U}) EXPECT_EQ(page->LastCollectiveText(rank), "") << "word " << i;
    words[i] ^= 0xffffffffU;
  }
}

TEST(GenerationPage, ADamagedHeaderIsMendedBeforeThePageIsBroken) {
  for (size_t i = 0; i <= offsetof(PageHeader, broken) / sizeof(uint32_t); ++i) {
    std::unique_ptr<GenerationPage> page = PageOfTwo();
    WordsOf(*page)[i] ^= 0xffffffffU;
    page->Break("a rank is gone");
    EXPECT_TRUE(page->broken() && page->page().broken()) << "word " << i;
    EXPECT_EQ(page->page().broken_text(), "a rank is gone");
    EXPECT_TRUE(page->HeaderIsSound());
  }
}

}  // namespace
}  // namespace hvd
