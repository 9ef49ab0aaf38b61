// Worlds of 2 to 256 engines in one thread: random programs of all collectives, process sets,
// groups, joins and mistakes, under seeded delays, reorderings, ranks that leave and worlds that
// break. Never a deadlock, never a wrong sum.
//
// The same on 2 to 4 hosts, with real threads between them.
//
// A failing seed is printed; HVD_SIM_SEED=... runs that one alone. HVD_SOAK=1 runs 10,000.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
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

std::string RunOnSeveralHosts(uint64_t seed) {
  std::mt19937_64 random(seed);
  SimShape shape = ShapeOf(seed, random);
  shape.size = 2 + shape.size % 7;
  const std::vector<uint32_t> host_of = HostsOf(shape.size, random);
  return SimWorld(MakeProgram(shape, random), host_of, FaultOf(seed), seed).Run();
}

void RunSeeds(std::string (*run)(uint64_t), uint64_t count) {
  const char* one = std::getenv("HVD_SIM_SEED");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  const char* soak = std::getenv("HVD_SOAK");
  const uint64_t seeds = one != nullptr ? 1 : soak != nullptr && soak[0] == '1' ? 10'000 : count;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    ASSERT_EQ(run(seed), "") << "with HVD_SIM_SEED=" << seed;
  }
}

TEST(EngineSim, NeverStandsStillAndNeverErrs) { RunSeeds(RunOnOneHost, 300); }

TEST(HostsSim, NeverStandsStillAndNeverErrs) { RunSeeds(RunOnSeveralHosts, 100); }

}  // namespace
}  // namespace hvd::test
