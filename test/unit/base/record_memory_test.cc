#include "runtime/base/record_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace hvd {
namespace {

// Blocks of many sizes, with their sizes.
std::vector<std::pair<void*, size_t>> AllocateMany(size_t largest) {
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t bytes = 1; bytes <= largest; bytes += 1 + bytes / 7) {
    for (int i = 0; i < 20; ++i) blocks.emplace_back(RecordMemory::Allocate(bytes), bytes);
  }
  return blocks;
}

void FreeAll(const std::vector<std::pair<void*, size_t>>& blocks) {
  for (const auto& [memory, bytes] : blocks) RecordMemory::Free(memory, bytes);
}

TEST(RecordMemory, BlocksAreAlignedAndDoNotOverlap) {
  const auto blocks = AllocateMany(100'000);
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[i].first) % 16, 0u);
    std::memset(blocks[i].first, static_cast<int>(i % 251), blocks[i].second);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[i].first);
    for (size_t at : {size_t{0}, blocks[i].second / 2, blocks[i].second - 1}) {
      ASSERT_EQ(bytes[at], i % 251) << blocks[i].second << " bytes, at " << at;
    }
  }
  FreeAll(blocks);
}

TEST(RecordMemory, FreedRecordsAreUsedAgain) {
  const RecordMemoryUsage before = RecordMemory::Usage();
  FreeAll(AllocateMany(100'000));
  const RecordMemoryUsage once = RecordMemory::Usage();
  EXPECT_EQ(once.used, before.used);
  for (int round = 0; round < 10; ++round) FreeAll(AllocateMany(100'000));
  EXPECT_EQ(RecordMemory::Usage().mapped, once.mapped);
  EXPECT_EQ(RecordMemory::Usage().used, before.used);
}

TEST(RecordMemory, LargeRecordsGoBackToTheSystem) {
  const RecordMemoryUsage before = RecordMemory::Usage();
  auto large = std::make_unique<RecordVector<uint64_t>>(1 << 20);
  EXPECT_GE(RecordMemory::Usage().used, before.used + (size_t{8} << 20));
  large.reset();
  EXPECT_EQ(RecordMemory::Usage().used, before.used);
  EXPECT_EQ(RecordMemory::Usage().mapped, before.mapped);
}

TEST(RecordMemory, ServesSeveralThreads) {
  const size_t before = RecordMemory::Usage().used;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) {
        RecordVector<RecordString> strings(50, RecordString(static_cast<size_t>(20 + i), 'x'));
        strings.resize(10);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(RecordMemory::Usage().used, before);
}

}  // namespace
}  // namespace hvd
