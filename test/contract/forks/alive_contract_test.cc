#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <initializer_list>
#include <mutex>
#include <vector>

#include "runtime/segment/alive.h"
#include "runtime/segment/shared_memory.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

class Alive : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<UniqueFd> fd = CreateSharedMemory("hvd-test", JobPage::BytesFor(2));
    memory_ = Mapping::Map(fd->get(), JobPage::BytesFor(2)).value();
    page_ = JobPage::Format(memory_.data(), 2, 1);
  }

  // A child that holds the mark of a rank; returns once it does.
  pid_t ForkHolder(uint32_t rank, bool leaves) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_t child = ::fork();
    if (child == 0) {
      AliveMark mark;
      bool held = mark.Hold(page_.rank(rank).alive).ok();
      if (leaves) mark.Release();
      (void)!::write(ready[1], held ? "y" : "n", 1);
      if (leaves) ::_exit(0);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char said = 0;
    EXPECT_EQ(::read(ready[0], &said, 1), 1);
    EXPECT_EQ(said, 'y');
    ::close(ready[0]);
    return child;
  }

  Mapping memory_;
  JobPage page_;
};

TEST_F(Alive, AWordIsNotDeadWhileItIsFreeOrHeld) {
  EXPECT_EQ(ReadAliveWord(0), AliveWord::kFree);
  AliveMark mark;
  ASSERT_TRUE(mark.Hold(page_.rank(0).alive).ok());
  EXPECT_EQ(ReadAliveWord(page_.rank(0).alive), AliveWord::kHeld);
  ASSERT_TRUE(mark.Hold(page_.rank(1).alive).ok()) << "at most one word is held";
  EXPECT_EQ(page_.rank(0).alive.load(), 0u);
  mark.Release();
  mark.Release();
  EXPECT_EQ(page_.rank(1).alive.load(), 0u);
}

// When a thread ends, the kernel walks the list it registered: after the mark is gone that must not
// be ours any more.
TEST_F(Alive, GivesTheThreadItsOwnListBack) {
  auto registered = [] {
    void* head = nullptr;
    size_t length = 0;
    EXPECT_EQ(::syscall(SYS_get_robust_list, 0, &head, &length), 0);
    return head;
  };
  void* before = registered();
  {
    AliveMark mark;
    ASSERT_TRUE(mark.Hold(page_.rank(0).alive).ok());
    EXPECT_NE(registered(), before);
    ASSERT_TRUE(mark.Hold(page_.rank(1).alive).ok());
  }
  EXPECT_EQ(registered(), before);
}

// Rank 0 leaves in peace and rank 1 is killed: the watch tells of rank 1 alone, and once.
TEST_F(Alive, AKilledHolderIsNoticedAndALeaverIsNot) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not follow a fork";
#endif
  pid_t leaver = ForkHolder(0, /*leaves=*/true);
  pid_t victim = ForkHolder(1, /*leaves=*/false);
  EXPECT_EQ(::waitpid(leaver, nullptr, 0), leaver);
  std::mutex mutex;
  std::vector<uint32_t> dead;
  std::promise<void> noticed;
  {
    DeathWatch watch(page_, [&](uint32_t rank) {
      std::lock_guard lock(mutex);
      dead.push_back(rank);
      if (dead.size() == 1) noticed.set_value();
    });
    ::kill(victim, SIGKILL);
    ASSERT_EQ(noticed.get_future().wait_for(kDeadline), std::future_status::ready);
  }
  EXPECT_EQ(::waitpid(victim, nullptr, 0), victim);
  EXPECT_EQ(dead, std::vector<uint32_t>{1});
  EXPECT_EQ(ReadAliveWord(page_.rank(1).alive), AliveWord::kDied);
  EXPECT_NE(ReadAliveWord(page_.rank(0).alive), AliveWord::kDied);
}

TEST_F(Alive, ADeathBeforeTheWatchBeganIsToldToo) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not follow a fork";
#endif
  pid_t victim = ForkHolder(0, /*leaves=*/false);
  ::kill(victim, SIGKILL);
  EXPECT_EQ(::waitpid(victim, nullptr, 0), victim);
  std::promise<uint32_t> noticed;
  DeathWatch watch(page_, [&](uint32_t rank) { noticed.set_value(rank); });
  EXPECT_EQ(noticed.get_future().get(), 0u);
}

TEST_F(Alive, AWatchOverAPeacefulWorldEnds) {
  DeathWatch watch(page_, [](uint32_t rank) { ADD_FAILURE() << "rank " << rank; });
}

TEST(ReadAliveWord, TellsWhatNobodyCanHaveMeant) {
  for (auto [word, said] :
       std::initializer_list<std::pair<uint32_t, AliveWord>>{{0, AliveWord::kFree},
                                                             {0x80001234, AliveWord::kHeld},
                                                             {0x40000000, AliveWord::kDied},
                                                             {0xc0000000, AliveWord::kDied},
                                                             {0x1234, AliveWord::kDamaged},
                                                             {0x80000000, AliveWord::kDamaged},
                                                             {0x40001234, AliveWord::kDamaged},
                                                             {0xffffffff, AliveWord::kDamaged}}) {
    EXPECT_EQ(ReadAliveWord(word), said) << std::hex << word;
  }
}

TEST_F(Alive, AWordThatNobodyCanHaveMeantIsDamageAndNoDeath) {
  std::promise<uint32_t> damaged;
  page_.rank(1).alive.store(0xffffffff);
  DeathWatch watch(
      page_, [](uint32_t rank) { ADD_FAILURE() << "rank " << rank; },
      [&](uint32_t rank) { damaged.set_value(rank); });
  EXPECT_EQ(damaged.get_future().get(), 1u);
}

}  // namespace
}  // namespace hvd
