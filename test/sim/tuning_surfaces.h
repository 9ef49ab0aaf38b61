// Surfaces that a tuner can be let loose on: a job's gain by each choice of settings.
#ifndef HVD_TEST_SIM_TUNING_SURFACES_H_
#define HVD_TEST_SIM_TUNING_SURFACES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "autotune/search_space.h"

namespace hvd {

struct TuningSurface {
  std::string name;
  std::vector<TuneAxis> axes;
  // The true score at a point in unit coordinates (of categories their number), in a window.
  std::function<double(const std::vector<double>& unit, size_t window)> score;
  size_t moves_from = 0, moves_to = 0;  // the windows in which the surface changes; 0: none
};

std::vector<TuningSurface> TuningSurfaces();

// How a search went.
struct TuningRun {
  double regret = 0;    // of the choice, against the best point, in the last window
  double lost = 0;      // in windows: what the best point would have given, less what was got
  size_t windows = 0;   // until the search was over
  bool risked = false;  // two windows in a row 10 % below the default
  std::vector<TunePoint> points;
};

struct TuningTask {
  const TuningSurface* surface = nullptr;
  double noise = 0.05;           // standard deviation of a window's score, as a part
  double prediction_error = -1;  // the largest, as a part; below 0: nothing is predicted
  size_t windows = 16;
  uint64_t seed = 1;
};

// The windows that a job has: the surface may move after the search.
size_t WindowsOf(const TuningTask& task);

// A job on a surface, for any search: counts what the windows lose.
class PlayedJob {
 public:
  // Both outlive this.
  PlayedJob(const TuningTask& task, const SearchSpace& space);

  // A window with this point: the score that is measured.
  double Run(const TunePoint& point);
  // The search is over: the windows that are left have this point.
  TuningRun Choose(const TunePoint& point);

 private:
  double True(const TunePoint& point, size_t window) const;

  const TuningTask& task_;
  const SearchSpace& space_;
  std::mt19937_64 noise_;
  TuningRun run_;
  bool last_bad_ = false;
};

TuningRun RunTuner(const TuningTask& task);
// A random point in each window of the search; the best seen is chosen.
TuningRun RunRandomSearch(const TuningTask& task);

}  // namespace hvd

#endif  // HVD_TEST_SIM_TUNING_SURFACES_H_
