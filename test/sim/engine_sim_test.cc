// Worlds of 2 to 256 engines in one thread: random programs of all collectives, process sets, groups, joins and mistakes,
// under seeded delays, reorderings, ranks that leave and worlds that break. Never a deadlock, never a wrong sum.
//
// A failing seed is printed; HVD_SIM_SEED=... runs that one alone. HVD_SOAK=1 runs 10,000.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

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

std::string RunSeed(uint64_t seed) {
  std::mt19937_64 random(seed);
  const SimShape shape = ShapeOf(seed, random);
  constexpr Fault kFaults[] = {Fault::kNone, Fault::kLeave, Fault::kNone, Fault::kBreak};
  const Fault fault = kFaults[seed % std::size(kFaults)];
  return SimWorld(MakeProgram(shape, random), fault, seed).Run();
}

TEST(EngineSim, NeverStandsStillAndNeverErrs) {
  const char* one = std::getenv("HVD_SIM_SEED");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  const char* soak = std::getenv("HVD_SOAK");
  const uint64_t seeds = one != nullptr ? 1 : soak != nullptr && soak[0] == '1' ? 10'000 : 300;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const std::string failure = RunSeed(seed);
    ASSERT_EQ(failure, "") << "with HVD_SIM_SEED=" << seed;
  }
}

}  // namespace
}  // namespace hvd::test
