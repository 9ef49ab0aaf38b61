// Elastic jobs under seeded faults: ranks and hosts that die, lists of hosts that change, ranks
// that are slow, that never come back, that fail and that stop. Each job ends, with a reason.
//
// A failing seed prints its schedule; HVD_SIM_SEED=... runs that one alone. HVD_SOAK=1 runs
// 100,000.
#include "test/sim/elastic_sim.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

namespace hvd::test {
namespace {

TEST(ElasticSim, EachJobEndsAndNoRuleIsBroken) {
  const char* one = std::getenv("HVD_SIM_SEED");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  const char* soak = std::getenv("HVD_SOAK");
  const uint64_t count = one != nullptr ? 1 : soak != nullptr && soak[0] == '1' ? 100'000 : 3000;
  std::map<int, uint64_t> ends;
  uint64_t generations = 0, spares = 0, restarts = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const ElasticSimResult result = ElasticSim(seed).Run();
    ++ends[result.exit_code];
    generations += result.generations;
    spares += result.spares;
    restarts += result.restarts;
    ASSERT_EQ(result.trouble, "") << "with HVD_SIM_SEED=" << seed << "\n"
                                  << ElasticSim(seed, true).Run().schedule;
  }
  std::printf("%llu jobs, %llu generations, %llu spares, %llu restarts; exit codes:",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(generations),
              static_cast<unsigned long long>(spares), static_cast<unsigned long long>(restarts));
  for (const auto& [code, jobs] : ends)
    std::printf(" %d: %llu", code, static_cast<unsigned long long>(jobs));
  std::printf("\n");
  if (one != nullptr) return;
  // The faults are neither so rare nor so many that nothing is tried.
  EXPECT_GT(ends[0], count / 10);
  EXPECT_GT(ends[75], 0U);
  EXPECT_GT(ends.size(), 3U);
  EXPECT_GT(generations, count * 2);
  EXPECT_GT(spares, count / 20);
  EXPECT_GT(restarts, count / 20);
}

TEST(ElasticSim, EachJobEndsThoughItsHvdrunIsKilledAgainAndAgain) {
  const char* one = std::getenv("HVD_SIM_SEED");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  const char* soak = std::getenv("HVD_SOAK");
  const uint64_t count = one != nullptr ? 1 : soak != nullptr && soak[0] == '1' ? 100'000 : 2000;
  std::map<int, uint64_t> ends;
  uint64_t generations = 0, taken_over = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const ElasticSimResult result = ElasticSim(seed, false, true).Run();
    ++ends[result.exit_code];
    generations += result.generations;
    taken_over += result.taken_over;
    ASSERT_EQ(result.trouble, "") << "with HVD_SIM_SEED=" << seed << "\n"
                                  << ElasticSim(seed, true, true).Run().schedule;
  }
  std::printf("%llu jobs, %llu generations, %llu takeovers\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(generations),
              static_cast<unsigned long long>(taken_over));
  if (one != nullptr) return;
  EXPECT_GT(ends[0], count / 10);
  EXPECT_GT(generations, count * 2);
  EXPECT_GT(taken_over, count);
}

TEST(ElasticSim, OneSeedIsOneSchedule) {
  EXPECT_EQ(ElasticSim(7, true).Run().schedule, ElasticSim(7, true).Run().schedule);
  EXPECT_NE(ElasticSim(7, true).Run().schedule, ElasticSim(8, true).Run().schedule);
}

}  // namespace
}  // namespace hvd::test
