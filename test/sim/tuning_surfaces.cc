#include "test/sim/tuning_surfaces.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <random>
#include <utility>

#include "autotune/tuner.h"

namespace hvd {
namespace {

using Unit = std::vector<double>;

TuneAxis Log(std::string name, double low, double high, double initial) {
  return {.name = std::move(name), .low = low, .high = high, .initial = initial};
}

TuneAxis Integer(std::string name, double high, double initial) {
  return {.name = std::move(name),
          .kind = TuneAxis::Kind::kInteger,
          .low = 0,
          .high = high,
          .initial = initial};
}

TuneAxis Category(std::string name, double high, double initial) {
  return {.name = std::move(name),
          .kind = TuneAxis::Kind::kCategory,
          .low = 0,
          .high = high,
          .initial = initial};
}

double Square(double x) { return x * x; }
double Bump(double x, double centre, double width) {
  return std::exp(-Square((x - centre) / width) / 2);
}

std::vector<TuneAxis> TwoAxes() { return {Log("a", 1, 1024, 8), Log("b", 1, 1024, 128)}; }

// Between measured values, evenly spaced in the coordinate.
double Between(const std::vector<double>& values, double x) {
  const double at = std::clamp(x, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto left = std::min(static_cast<size_t>(at), values.size() - 2);
  const double part = at - static_cast<double>(left);
  return values[left] * (1 - part) + values[left + 1] * part;
}

double TwoOptima(const Unit& x) {
  return 1 + 0.08 * Bump(x[0], 0.25, 0.15) * Bump(x[1], 0.7, 0.2) +
         0.25 * Bump(x[0], 0.85, 0.12) * Bump(x[1], 0.25, 0.2);
}

double CategoryTrap(const Unit& x) {
  static constexpr double kLevel[] = {1.0, 0.8, 0.95, 0.7}, kGain[] = {0.05, 0.1, 0.4, 0.2};
  const auto kind = static_cast<size_t>(x[1]);
  return kLevel[kind] + kGain[kind] * Bump(x[0], kind == 2 ? 0.75 : 0.3, 0.2);
}

}  // namespace

std::vector<TuningSurface> TuningSurfaces() {
  std::vector<TuningSurface> all;
  all.push_back({"bowl", TwoAxes(), [](const Unit& x, size_t) {
                   return 1.3 - 0.9 * Square(x[0] - 0.7) - 0.5 * Square(x[1] - 0.4);
                 }});
  all.push_back({"default is best", TwoAxes(), [](const Unit& x, size_t) {
                   return 1.2 - 0.8 * Square(x[0] - 0.3) - 0.6 * Square(x[1] - 0.7);
                 }});
  all.push_back({"ridge", TwoAxes(),
                 [](const Unit& x, size_t) { return 1 + 0.3 * Bump(x[0] + x[1], 1.3, 0.2); }});
  all.push_back({"cliff", TwoAxes(), [](const Unit& x, size_t) {
                   return x[0] > 0.8 ? 0.5 : 1 + 0.4 * x[0] - 0.1 * Square(x[1] - 0.5);
                 }});
  all.push_back({"plateau", TwoAxes(),
                 [](const Unit& x, size_t) { return x[0] > 0.5 && x[1] < 0.6 ? 1.2 : 1.0; }});
  all.push_back({"two optima", TwoAxes(), [](const Unit& x, size_t) { return TwoOptima(x); }});
  all.push_back({"category trap",
                 {Log("a", 1, 1024, 8), Category("kind", 3, 0)},
                 [](const Unit& x, size_t) { return CategoryTrap(x); }});
  all.push_back(
      {"stairs", {Integer("stripes", 7, 0), Log("b", 1, 1024, 128)}, [](const Unit& x, size_t) {
         const double stripes = std::round(x[0] * 7) + 1;
         return std::min(stripes, 4.0) / 4 * 0.5 + 0.7 - 0.02 * stripes - 0.2 * Square(x[1] - 0.5);
       }});
  // Made up around three points of a user's log of Horovod (issue 2207): 424, 549, 586.
  all.push_back({"fusion log",
                 {Log("fusion_mb", 1, 128, 4), Log("cycle_ms", 1, 100, 5)},
                 [](const Unit& x, size_t) {
                   return Between({360, 400, 440, 500, 549, 575, 586, 580}, x[0]) *
                          Between({0.97, 1.0, 1.0, 0.98, 0.93, 0.8, 0.6}, x[1]) / 440;
                 }});
  // Made up: nearly flat, as steps of large tensors in shared memory are by the size of a chunk.
  all.push_back({"chunk log",
                 {Log("chunk_kib", 8, 1024, 128), Log("spins", 1, 4096, 400)},
                 [](const Unit& x, size_t) {
                   return Between({0.90, 0.95, 0.99, 1.0, 1.0, 0.99, 0.97, 0.93}, x[0]) *
                          Between({0.88, 0.92, 0.96, 1.0, 1.0, 0.99, 0.97}, x[1]);
                 }});
  all.push_back({"five axes",
                 {Log("a", 1, 1024, 32), Log("b", 1, 1024, 32), Log("c", 1, 1024, 32),
                  Log("d", 1, 1024, 32), Integer("e", 7, 3)},
                 [](const Unit& x, size_t) {
                   return 1 + 0.3 * Bump(x[0], 0.8, 0.3) + 0.1 * Bump(x[3], 0.2, 0.3) + 0.01 * x[1];
                 }});
  all.push_back({"moving optimum", TwoAxes(),
                 [](const Unit& x, size_t window) {
                   const double moved =
                       std::clamp((static_cast<double>(window) - 20) / 60, 0.0, 1.0);
                   const double at = 0.7 - 0.45 * moved;
                   return 1.3 - 0.9 * Square(x[0] - at) - 0.3 * Square(x[1] - 0.4);
                 },
                 20, 80});
  return all;
}

namespace {

// The best point of a fine net of random ones.
double Oracle(const TuningSurface& surface, const SearchSpace& space, size_t window) {
  std::mt19937_64 random(7);
  double best = surface.score(space.ToUnit(space.initial()), window);
  for (int i = 0; i < 5'000; ++i) {
    const TunePoint point = space.FromUnit(space.RandomUnit(random));
    best = std::max(best, surface.score(space.ToUnit(point), window));
  }
  return best;
}

double OracleOf(const TuningSurface& surface, const SearchSpace& space, size_t window) {
  static std::map<std::pair<std::string, size_t>, double> known;
  const size_t moved = window < surface.moves_from ? 0 : std::min(window, surface.moves_to);
  auto [found, isnew] = known.try_emplace({surface.name, moved}, 0.0);
  if (isnew) found->second = Oracle(surface, space, window);
  return found->second;
}

// Right up to a factor that goes up and down smoothly.
std::function<double(const TunePoint&)> Predictor(const TuningTask& task, SearchSpace space) {
  if (task.prediction_error < 0) return {};
  std::mt19937_64 random(task.seed * 977 + 5);
  std::vector<double> waves;
  for (size_t d = 0; d < space.dimensions(); ++d) waves.push_back(NormalRandom(random));
  const double phase = UnitRandom(random), most = std::log1p(task.prediction_error);
  return [waves, phase, most, space, surface = task.surface](const TunePoint& point) {
    const Unit unit = space.ToUnit(point);
    double at = phase;
    for (size_t d = 0; d < waves.size(); ++d) at += waves[d] * unit[d];
    const double error = most * std::sin(2 * std::numbers::pi * at);
    return 1000 * surface->score(unit, 0) * std::exp(error);
  };
}

}  // namespace

size_t WindowsOf(const TuningTask& task) {
  // A surface that moves has to be noticed first, and is searched again then.
  return task.surface->moves_to == 0 ? task.windows : task.surface->moves_to + 2 * task.windows;
}

PlayedJob::PlayedJob(const TuningTask& task, const SearchSpace& space)
    : task_(task), space_(space), noise_(task.seed) {}

double PlayedJob::True(const TunePoint& point, size_t window) const {
  return task_.surface->score(space_.ToUnit(point), window);
}

double PlayedJob::Run(const TunePoint& point) {
  const size_t window = run_.points.size();
  const double truth = True(point, window);
  run_.lost += 1 - truth / OracleOf(*task_.surface, space_, window);
  const bool bad = truth < 0.9 * True(space_.initial(), window) - 1e-12;
  run_.risked = run_.risked || (bad && last_bad_);
  last_bad_ = bad;
  run_.points.push_back(point);
  return 50 * truth * std::exp(task_.noise * NormalRandom(noise_));
}

TuningRun PlayedJob::Choose(const TunePoint& point) {
  run_.windows = run_.points.size();
  while (run_.points.size() < WindowsOf(task_)) Run(point);
  const size_t last = run_.points.size() - 1;
  run_.regret = 1 - True(point, last) / OracleOf(*task_.surface, space_, last);
  return std::move(run_);
}

TuningRun RunTuner(const TuningTask& task) {
  const SearchSpace space = *SearchSpace::Make(task.surface->axes);
  TunerOptions options;
  options.seed = task.seed;
  options.most_windows = task.windows;
  options.predicted = Predictor(task, space);
  Tuner tuner(space, std::move(options));
  PlayedJob job(task, space);
  size_t searched = 0;
  for (size_t w = 0; w < WindowsOf(task); ++w) {
    if (!tuner.settled()) searched = w + 1;
    tuner.Record(job.Run(tuner.trial().point));
  }
  TuningRun run = job.Choose(tuner.settled() ? tuner.trial().point : tuner.result().point);
  run.windows = searched;
  return run;
}

TuningRun RunRandomSearch(const TuningTask& task) {
  const SearchSpace space = *SearchSpace::Make(task.surface->axes);
  PlayedJob job(task, space);
  std::mt19937_64 random(task.seed + 1);
  TunePoint best = space.initial();
  double most = 0;
  for (size_t w = 0; w < task.windows; ++w) {
    const TunePoint point = space.FromUnit(space.RandomUnit(random));
    const double score = job.Run(point);
    if (score > most) {
      most = score;
      best = point;
    }
  }
  return job.Choose(best);
}

}  // namespace hvd
