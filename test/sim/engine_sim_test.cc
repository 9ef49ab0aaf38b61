// Worlds of 2 to 256 engines in one thread: random programs of all collectives, process sets,
// groups, joins and mistakes, under seeded delays, reorderings, ranks that leave and worlds that
// break. Never a deadlock, never a wrong sum.
//
// The same on 2 to 4 hosts, with the threads between them one at a time.
//
// A failing seed is printed; HVD_SIM_SEED=1865 runs that one alone, HVD_SIM_SEED=2000-2999 those.
// HVD_SOAK=1 runs 10,000.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "test/sim/sim_world.h"

namespace hvd::test {
namespace {

SimShape ShapeOf(uint64_t seed, std::mt19937_64& random) {
  SimShape shape;
  if (seed % 100 == 99) {
    shape.size = 100 + static_cast<uint32_t>(random() % 157);
    shape.steps = 3;
    shape.ops_per_step = 3;
    shape.names = 2;
  } else if (seed % 10 == 9) {
    shape.size = 10 + static_cast<uint32_t>(random() % 30);
    shape.steps = 5;
  } else {
    shape.size = 2 + static_cast<uint32_t>(random() % 5);
    shape.steps = 4 + static_cast<uint32_t>(random() % 12);
    shape.ops_per_step = 1 + static_cast<uint32_t>(random() % 12);
    shape.names = 1 + static_cast<uint32_t>(random() % 8);
  }
  return shape;
}

Fault FaultOf(uint64_t seed) {
  constexpr Fault kFaults[] = {Fault::kNone, Fault::kLeave, Fault::kNone, Fault::kBreak};
  return kFaults[seed % std::size(kFaults)];
}

std::string RunOnOneHost(uint64_t seed) {
  std::mt19937_64 random(seed);
  const SimShape shape = ShapeOf(seed, random);
  return SimWorld(MakeProgram(shape, random), std::vector<uint32_t>(shape.size), FaultOf(seed),
                  seed)
      .Run();
}

// Two hosts at least; one rank on each or more.
std::vector<uint32_t> HostsOf(uint32_t ranks, std::mt19937_64& random) {
  const auto hosts = static_cast<uint32_t>(2 + random() % std::min(3u, ranks - 1));
  std::vector<uint32_t> host_of;
  for (uint32_t h = 0; h < hosts; ++h) host_of.push_back(h);
  while (host_of.size() < ranks) host_of.push_back(static_cast<uint32_t>(random() % hosts));
  std::sort(host_of.begin(), host_of.end());
  return host_of;
}

std::string RunOnSeveralHosts(uint64_t seed, uint64_t* fingerprint) {
  std::mt19937_64 random(seed);
  SimShape shape = ShapeOf(seed, random);
  shape.size = 2 + shape.size % 7;
  const std::vector<uint32_t> host_of = HostsOf(shape.size, random);
  SimWorld world(MakeProgram(shape, random), host_of, FaultOf(seed), seed);
  std::string failure = world.Run();
  *fingerprint = world.fingerprint();
  return failure;
}

std::string RunOnSeveralHosts(uint64_t seed) {
  uint64_t fingerprint = 0;
  return RunOnSeveralHosts(seed, &fingerprint);
}

// One rank on each of two hosts, and sums that come again: early offers.
std::string RunOnTwoHosts(uint64_t seed) {
  std::mt19937_64 random(seed);
  SimShape shape;
  shape.steps = 4 + static_cast<uint32_t>(random() % 12);
  shape.ops_per_step = 1 + static_cast<uint32_t>(random() % 8);
  shape.names = 1 + static_cast<uint32_t>(random() % 2);
  shape.steady = true;
  return SimWorld(MakeProgram(shape, random), {0, 1}, FaultOf(seed), seed).Run();
}

struct Seeds {
  uint64_t first = 0, last = 0;
};

// Those that the environment asks for, or the first `count`.
Seeds SeedsToRun(uint64_t count) {
  if (const char* chosen = std::getenv("HVD_SIM_SEED")) {
    char* end = nullptr;
    const uint64_t first = std::strtoull(chosen, &end, 10);
    return {first, *end == '-' ? std::strtoull(end + 1, nullptr, 10) : first};
  }
  const char* soak = std::getenv("HVD_SOAK");
  return {0, (soak != nullptr && soak[0] == '1' ? 10'000 : count) - 1};
}

void RunSeeds(const std::function<std::string(uint64_t)>& run, uint64_t count) {
  const Seeds seeds = SeedsToRun(count);
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    ASSERT_EQ(run(seed), "") << "with HVD_SIM_SEED=" << seed;
  }
}

TEST(EngineSim, NeverStandsStillAndNeverErrs) { RunSeeds(RunOnOneHost, 300); }

TEST(HostsSim, NeverStandsStillAndNeverErrs) {
  RunSeeds([](uint64_t seed) { return RunOnSeveralHosts(seed); }, 100);
}

TEST(HostsSim, SumsThatComeAgainNeverStandStillAndNeverErr) { RunSeeds(RunOnTwoHosts, 400); }

TEST(HostsSim, IsTheSameRunForTheSameSeed) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    uint64_t first = 0, second = 0;
    EXPECT_EQ(RunOnSeveralHosts(seed, &first), "");
    EXPECT_EQ(RunOnSeveralHosts(seed, &second), "");
    EXPECT_NE(first, 0u);
    EXPECT_EQ(first, second) << "with seed " << seed;
  }
}

// A rank left, so that a rank of its host joined in vain. The other hosts did not learn that it had
// joined, and waited for it.
TEST(HostsSim, WhoJoinedBesideOneThatLeftIsNotAwaited) {
  for (uint64_t seed : {925, 1577, 1721, 2361, 2365, 4345, 4965}) {
    ASSERT_EQ(RunOnSeveralHosts(seed), "") << "with " << seed;
  }
}

// Ranks joined after the removal of a set that was not over on another rank of their host. There,
// an operation of the set was complete without them, and read memory of a leader that had given it
// up.
TEST(HostsSim, AJoinComesAfterTheChangeOfSetsBeforeIt) {
  for (uint64_t seed : {16040, 19757}) {
    ASSERT_EQ(RunOnSeveralHosts(seed), "") << "with " << seed;
  }
}

}  // namespace
}  // namespace hvd::test
