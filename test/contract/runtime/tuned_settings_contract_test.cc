// Settings change while ranks work: every rank sees the change at another moment, and no result
// changes a bit.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "test/fakes/world_of_threads.h"

namespace hvd::test {
namespace {

std::vector<float> Noise(size_t count, uint32_t rank) {
  std::mt19937 random(rank + 1);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random()) / 1e9f;
  return values;
}

void Change(TunedSettings& tuned, uint32_t turn) {
  static constexpr std::array<uint32_t, 6> kChunks{0, 16, 1, 2048, 64, 7};
  tuned.chunk_kib = kChunks[turn % kChunks.size()];
  tuned.spins = turn % 3;
  tuned.yields = turn % 4;
}

TEST(TunedSettings, NoSwitchChangesABitOfAnyResult) {
  for (const uint32_t size : {2u, 3u}) {
    WorldOfThreads world(Transport::kShm, size);
    TunedSettings& tuned = world.page().header().tuned;
    std::atomic<uint32_t> turn{0};
    std::vector<std::vector<float>> first(size);
    world.Run([&](uint32_t rank) {
      const std::vector<float> in = Noise(100'003, rank);
      for (int step = 0; step < 60; ++step) {
        Change(tuned, turn++);  // while others are anywhere in their steps
        std::vector<float> out(in.size());
        ASSERT_TRUE(
            RunOne(world.engine(rank), AllreduceOf("x", in, out, DType::kFloat32, {100'003})).ok());
        if (step == 0) first[rank] = out;
        ASSERT_EQ(out, first[rank]) << "rank " << rank << ", step " << step;
      }
    });
    for (uint32_t rank = 1; rank < size; ++rank) EXPECT_EQ(first[rank], first[0]);
  }
}

TEST(TunedSettings, WhatIsNotChosenIsTheRanksOwn) {
  std::atomic<uint32_t> setting{0};
  EXPECT_EQ(ChosenOr(setting, 400u), 400u);
  setting = 1;
  EXPECT_EQ(ChosenOr(setting, 400u), 0u);
}

}  // namespace
}  // namespace hvd::test
