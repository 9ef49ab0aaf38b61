// A tuner on twelve surfaces under seeded noise, with predictions that are right and wrong.
//
// The seeds count from 10,000. Thresholds of the tuner are chosen on others (0 to 99), never on
// these: a bound that fails here is a goal that is missed, and not one to fit.
//
// HVD_SIM_SEED=... runs one seed alone; HVD_SOAK=1 prints a table, also of
// predictions that are off by 20 % and without one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "autotune/step_model.h"
#include "autotune/tuner.h"
#include "test/sim/tuning_surfaces.h"

namespace hvd {
namespace {

constexpr uint64_t kFirstSeed = 10'000;

bool Soak() {
  const char* soak = std::getenv("HVD_SOAK");
  return soak != nullptr && soak[0] == '1';
}

struct Outcome {
  double median_regret = 0, worst_regret = 0, mean_lost = 0, mean_windows = 0;
};

template <typename Run>
Outcome OverSeeds(TuningTask task, size_t seeds, Run& run) {
  const char* one = std::getenv("HVD_SIM_SEED");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : kFirstSeed;
  if (one != nullptr) seeds = 1;
  std::vector<double> regrets;
  Outcome outcome;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    task.seed = seed;
    const TuningRun result = run(task);
    regrets.push_back(result.regret);
    outcome.mean_lost += result.lost / static_cast<double>(seeds);
    outcome.mean_windows += static_cast<double>(result.windows) / static_cast<double>(seeds);
  }
  std::sort(regrets.begin(), regrets.end());
  outcome.median_regret = regrets[regrets.size() / 2];
  outcome.worst_regret = regrets.back();
  return outcome;
}

// Counts runs in which two windows in a row were 10 % below the default.
struct Risks {
  size_t runs = 0, risked = 0;

  TuningRun operator()(const TuningTask& task) {
    TuningRun run = RunTuner(task);
    ++runs;
    risked += run.risked ? 1 : 0;
    if (run.risked && Soak()) {
      std::printf("%s, HVD_SIM_SEED=%llu, noise %g, prediction off by %g: risked\n",
                  task.surface->name.c_str(), static_cast<unsigned long long>(task.seed),
                  task.noise, task.prediction_error);
    }
    return run;
  }
};

void Print(const TuningTask& task, const Outcome& ours, const Outcome& random) {
  if (!Soak()) return;
  std::printf(
      "%-16s noise %2.0f %% prediction %4.0f %%: regret %5.2f %% worst %5.1f %% windows %4.1f"
      " lost %5.2f; random search %5.2f %% lost %5.2f\n",
      task.surface->name.c_str(), 100 * task.noise, 100 * task.prediction_error,
      100 * ours.median_regret, 100 * ours.worst_regret, ours.mean_windows, ours.mean_lost,
      100 * random.median_regret, random.mean_lost);
  std::fflush(stdout);
}

// How much worse than the best point the choice may be: three in a hundred after 80 steps, five
// after 200 where windows are that noisy.
double MostRegret(const TuningTask& task) {
  const double most = task.noise < 0.1 ? 0.03 : 0.05;
  // The missed goals, where the prediction is far off (docs/decisions/autotune-search.md).
  if (task.prediction_error < 0.5 || task.noise < 0.05) return most;
  if (task.surface->name == "two optima") return task.noise < 0.1 ? 0.055 : 0.16;
  // A quarter of the runs or more stay with the default's category, which is 22 % worse.
  if (task.surface->name == "category trap") return task.noise < 0.1 ? 0.04 : 0.12;
  return most;
}

void TryAll(double noise, size_t windows) {
  constexpr size_t kSeeds = 100;  // a median of few says little where a quarter of runs miss
  Risks still, moving;
  for (const TuningSurface& surface : TuningSurfaces()) {
    // A random search predicts nothing.
    const Outcome random = OverSeeds({&surface, noise, -1.0, windows}, kSeeds, RunRandomSearch);
    for (const double error : {0.0, 0.2, 0.5, -1.0}) {
      // Nothing is promised without a prediction; between the best and the worst one lies 0.2.
      if (!Soak() && error != 0.0 && error != 0.5) continue;
      const TuningTask task{&surface, noise, error, windows};
      const Outcome ours = OverSeeds(task, kSeeds, surface.moves_to == 0 ? still : moving);
      Print(task, ours, random);
      if (error < 0) continue;
      EXPECT_LT(ours.mean_lost, random.mean_lost)
          << surface.name << ", noise " << noise << ", prediction off by " << error;
      EXPECT_LE(ours.median_regret, MostRegret(task))
          << surface.name << ", noise " << noise << ", prediction off by " << error;
    }
  }
  // Two very lucky windows of a bad point, where windows are noisy.
  EXPECT_LE(still.risked, still.runs / 1000);
  // A choice that becomes worse while it is in use has to show that first, through the noise. The
  // missed goal: 7 of 300 where windows have 10 % of noise.
  EXPECT_LE(moving.risked, noise < 0.1 ? moving.runs / 40 : moving.runs / 30);
  if (Soak()) {
    std::printf(
        "two windows in a row far below the default: %zu of %zu runs, and %zu of %zu where"
        " the optimum moves\n",
        still.risked, still.runs, moving.risked, moving.runs);
  }
}

// A window is five steps.
TEST(TuningSim, WithinThreePercentAfter80Steps) { TryAll(0.02, 16); }
TEST(TuningSim, WithinThreePercentAfter80NoisierSteps) { TryAll(0.05, 16); }
TEST(TuningSim, WithinFivePercentAfter200NoisySteps) { TryAll(0.10, 40); }

// A job over hosts: 60 small tensors and 4 large ones become ready one after the other.
Result<StepModel> OverHosts(const ExchangeCosts& costs) {
  std::vector<ObservedOperation> operations;
  for (int i = 0; i < 64; ++i) {
    const double ready = 300.0 * i;
    operations.push_back({ready, ready + 1000, i % 16 == 0 ? 24e6 : 8e4});
  }
  return StepModel::Make(costs, std::move(operations), 200'000);
}

// The loss of a search of 16 windows where the costs that were measured are off by so much, each in
// its own direction.
double RegretWithCostsOff(double error, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto off = [&](double cost) {
    return cost * (UnitRandom(random) < 0.5 ? 1 + error : 1 / (1 + error));
  };
  const ExchangeCosts costs{.alpha_us = 800, .beta_us_per_byte = 8e-4, .gamma_us_per_byte = 6e-4};
  const StepModel truth = *OverHosts(costs);
  const StepModel model =
      *OverHosts({off(costs.alpha_us), off(costs.beta_us_per_byte), off(costs.gamma_us_per_byte)});
  const auto score = [](const StepModel& of) {
    return [of](const TunePoint& point) { return 1e6 / of.StepUs(point[0] * (1 << 20)); };
  };
  Tuner tuner(*SearchSpace::Make(
                  {{.name = "fusion_mb", .low = 1, .high = 256, .initial = 128, .whole = true}}),
              {.seed = seed, .most_windows = 16, .predicted = score(model)});
  for (int window = 0; window < 16; ++window)
    tuner.Record(score(truth)(tuner.trial().point) * std::exp(0.03 * NormalRandom(random)));
  double oracle = 0;
  for (double mb = 1; mb <= 256; ++mb) oracle = std::max(oracle, score(truth)({mb}));
  const TunePoint chosen = tuner.settled() ? tuner.trial().point : tuner.result().point;
  return 1 - score(truth)(chosen) / oracle;
}

TEST(TuningSim, APredictionOfStepsMayBeOff) {
  for (const double error : {0.0, 0.2, 0.5}) {
    std::vector<double> regrets;
    for (uint64_t seed = kFirstSeed; seed < kFirstSeed + (Soak() ? 100 : 25); ++seed)
      regrets.push_back(RegretWithCostsOff(error, seed));
    std::sort(regrets.begin(), regrets.end());
    EXPECT_LE(regrets[regrets.size() / 2], 0.03) << error;
    if (!Soak()) continue;
    std::printf("steps over hosts, costs off by %2.0f %%: regret %5.2f %% worst %5.1f %%\n",
                100 * error, 100 * regrets[regrets.size() / 2], 100 * regrets.back());
  }
}

// With the default already best, the first 200 steps take one part in a hundred longer at most. The
// missed goal: two, where the prediction is off.
TEST(TuningSim, WhereTheDefaultIsBestTheFirst200StepsCostLittle) {
  constexpr size_t kWindows = 40;
  for (const TuningSurface& surface : TuningSurfaces()) {
    if (surface.name != "default is best" && surface.name != "chunk log") continue;
    const double flat = surface.name == "chunk log" ? 0.0033 : 0;  // by which the default is not
    for (const double noise : {0.02, 0.05, 0.1}) {
      for (const double error : {0.0, 0.2, 0.5}) {
        const TuningTask task{&surface, noise, error, kWindows};
        const double lost = OverSeeds(task, Soak() ? 100 : 15, RunTuner).mean_lost / kWindows;
        EXPECT_LE(lost - flat, error == 0 ? 0.01 : 0.02) << surface.name << ", noise " << noise;
        if (!Soak()) continue;
        std::printf("%-16s noise %2.0f %% prediction %4.0f %%: 200 steps take %.2f %% longer\n",
                    surface.name.c_str(), 100 * noise, 100 * error, 100 * lost);
      }
    }
  }
}

TEST(TuningSim, OneSeedIsOneSearch) {
  const std::vector<TuningSurface> surfaces = TuningSurfaces();
  const TuningTask task{&surfaces[0], 0.05, 0.2, 16, 42};
  EXPECT_EQ(RunTuner(task).points, RunTuner(task).points);
}

}  // namespace
}  // namespace hvd
