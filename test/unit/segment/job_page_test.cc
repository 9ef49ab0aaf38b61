#include "runtime/segment/job_page.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <thread>

#include "runtime/segment/shared_memory.h"

namespace hvd {
namespace {

// A formatted page in memory of the test.
struct Made {
  explicit Made(uint32_t local_size, uint64_t generation = 1)
      : bytes(JobPage::BytesFor(local_size)) {
    Result<UniqueFd> fd = CreateSharedMemory("hvd-test", bytes);
    memory = Mapping::Map(fd->get(), bytes).value();
    page = JobPage::Format(memory.data(), local_size, generation);
  }
  size_t bytes;
  Mapping memory;
  JobPage page;
};

TEST(JobPage, AViewSeesWhatTheAgentFormatted) {
  Made made(3, 17);
  Result<JobPage> view = JobPage::View(made.memory.data(), made.bytes);
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_TRUE(view->valid());
  EXPECT_EQ(view->local_size(), 3u);
  EXPECT_EQ(view->header().generation, 17u);
  EXPECT_FALSE(view->broken());
  EXPECT_EQ(view->broken_text(), "");
  for (uint32_t r = 0; r < 3; ++r) {
    EXPECT_EQ(view->rank(r).state.load(), static_cast<uint32_t>(RankState::kAbsent));
    EXPECT_EQ(view->rank(r).alive.load(), 0u);
    for (uint32_t w = 0; w < 3; ++w) EXPECT_EQ(view->rank(r).consumed[w].load(), 0u);
  }
  EXPECT_FALSE(JobPage().valid());
}

TEST(JobPageDeathTest, ARankThatThePageDoesNotHave) {
  Made made(3);
  made.page.header().local_size = 4096;  // a process gone wild; the view keeps its own number
  EXPECT_EQ(made.page.local_size(), 3u);
  EXPECT_DEATH(made.page.rank(3), "r < ranks_ does not hold \\(r, ranks_ = 3, 3\\)");
  EXPECT_DEATH(made.page.ring(3), "r < ranks_ does not hold");
  EXPECT_DEATH(JobPage::Format(made.memory.data(), 0, 1), "local_size >= 1");
}

// Every place of the page belongs to one owner: the blocks neither overlap nor leave the page.
TEST(JobPage, PartsDoNotOverlap) {
  for (uint32_t size : {1u, 2u, 7u, 64u, 600u}) {
    Result<UniqueFd> fd = CreateSharedMemory("hvd-test", JobPage::BytesFor(size));
    Mapping memory = Mapping::Map(fd->get(), JobPage::BytesFor(size)).value();
    JobPage page = JobPage::Format(memory.data(), size, 1);
    const std::byte* end = memory.data() + sizeof(PageHeader);
    for (uint32_t r = 0; r < size; ++r) {
      auto* block = reinterpret_cast<const std::byte*>(&page.rank(r));
      EXPECT_GE(block, end);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % kCacheLine, 0u);
      auto* cursors_end = reinterpret_cast<const std::byte*>(&page.rank(r).consumed[size]);
      EXPECT_LE(cursors_end, page.ring(r).data());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(page.ring(r).data()) % kCacheLine, 0u);
      end = page.ring(r).data() + page.ring(r).size() + page.header().trace_bytes;
    }
    EXPECT_EQ(end, memory.data() + memory.size());
    size_t ring = page.header().ring_bytes;
    EXPECT_EQ(ring & (ring - 1), 0u) << "positions are masked";
  }
}

TEST(JobPage, RefusesDamagedPages) {
  struct Case {
    const char* what;
    std::function<void(PageHeader&)> damage;
  };
  const Case cases[] = {
      {"magic", [](PageHeader& h) { h.magic ^= 1; }},
      {"version", [](PageHeader& h) { h.layout_version += 1; }},
      {"more ranks", [](PageHeader& h) { h.local_size += 1; }},
      {"fewer ranks", [](PageHeader& h) { h.local_size -= 1; }},
      {"too long", [](PageHeader& h) { h.total_bytes += 1; }},
      {"too short", [](PageHeader& h) { h.total_bytes -= 1; }},
      {"block offset", [](PageHeader& h) { h.block_offset += 4096; }},
      {"block stride", [](PageHeader& h) { h.block_stride += 64; }},
      {"ring offset", [](PageHeader& h) { h.ring_offset += 1 << 20; }},
      {"ring not a power of two", [](PageHeader& h) { h.ring_bytes -= 64; }},
      {"ring too large", [](PageHeader& h) { h.ring_bytes *= 2; }},
      {"trace offset", [](PageHeader& h) { h.trace_offset += 64; }},
      {"trace too large", [](PageHeader& h) { h.trace_bytes *= 2; }},
      {"no ranks", [](PageHeader& h) { h.local_size = 0, h.total_bytes = JobPage::BytesFor(0); }},
  };
  for (const Case& c : cases) {
    Made made(2);
    c.damage(made.page.header());
    Result<JobPage> view = JobPage::View(made.memory.data(), made.bytes);
    EXPECT_FALSE(view.ok()) << c.what;
    EXPECT_NE(view.ok(), view.status().message() != "") << c.what;
  }
}

TEST(JobPage, RefusesMemoryThatIsTooSmall) {
  Made made(2);
  EXPECT_FALSE(JobPage::View(made.memory.data(), 0).ok());
  EXPECT_FALSE(JobPage::View(made.memory.data(), sizeof(PageHeader) - 1).ok());
  EXPECT_FALSE(JobPage::View(made.memory.data(), made.bytes - 1).ok());
}

TEST(JobPage, AnotherVersionIsNamedInTheSentence) {
  Made made(1);
  made.page.header().layout_version = 99;
  Result<JobPage> view = JobPage::View(made.memory.data(), made.bytes);
  ASSERT_FALSE(view.ok());
  EXPECT_NE(view.status().message().find("version 99"), std::string::npos);
  EXPECT_NE(view.status().message().find("one release"), std::string::npos);
}

TEST(JobPage, TheFirstBreakWins) {
  Made made(2);
  made.page.Break("rank 1 (pid 7) died");
  made.page.Break("the job ends");
  EXPECT_TRUE(made.page.broken());
  EXPECT_EQ(made.page.broken_text(), "rank 1 (pid 7) died");
}

TEST(JobPage, ALongReasonIsCutAndStaysTerminated) {
  Made made(1);
  made.page.Break(std::string(5000, 'x'));
  EXPECT_EQ(made.page.broken_text(), std::string(1019, 'x'));
}

// The sleeper sleeps again and again until it sees the break; without the ring each sleep would
// last its whole time.
TEST(JobPage, BreakWakesSleepersOnBothBells) {
  Made made(2);
  auto sleep_until_broken = [&](Doorbell& bell) {
    while (!made.page.broken()) {
      uint32_t word = bell.word.load(std::memory_order_acquire);
      bell.sleeping.fetch_add(1, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (!made.page.broken()) SleepOn(bell, word, 3'600'000'000'000);
      bell.sleeping.fetch_sub(1, std::memory_order_relaxed);
    }
  };
  std::vector<std::thread> sleepers;
  for (uint32_t r = 0; r < 2; ++r) {
    sleepers.emplace_back([&, r] { sleep_until_broken(made.page.rank(r).bell); });
    sleepers.emplace_back([&, r] { sleep_until_broken(made.page.rank(r).runtime_bell); });
  }
  for (uint32_t r = 0; r < 2; ++r) {
    while (made.page.rank(r).bell.sleeping.load() == 0) std::this_thread::yield();
  }
  made.page.Break("over");
  for (std::thread& sleeper : sleepers) sleeper.join();
}

TEST(Doorbell, RingsOnlyForASleeper) {
  Doorbell bell{};
  Ring(bell);
  EXPECT_EQ(bell.word.load(), 0u) << "nobody sleeps: no system call, no store";
  bell.sleeping.store(1);
  Ring(bell);
  EXPECT_EQ(bell.word.load(), 1u);
  SleepOn(bell, 0, 3'600'000'000'000);  // an outdated word does not sleep
}

}  // namespace
}  // namespace hvd
