// Tuner: scores in, next settings out. Bayesian optimisation of measured/predicted, for a running
// job: every second window uses settings known to be good, until the ones tried have proven
// themselves.
//
// A window is a few steps with one choice of settings. The caller runs trial().point for a window,
// gives its score to Record, and continues with the next trial() for the whole job: after a search
// the tuner monitors the scores, and searches again if their level changes.
//
// A plain object without thread, clock and rank. The same options and scores give the same trials.
#ifndef HVD_AUTOTUNE_TUNER_H_
#define HVD_AUTOTUNE_TUNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/drift.h"
#include "autotune/duel.h"
#include "autotune/gaussian_process.h"
#include "autotune/search_space.h"

namespace hvd {

// The expected score of a point, above 0, in any unit. Empty: no prediction.
using Prediction = std::function<double(const TunePoint&)>;

struct TunerOptions {
  uint64_t seed = 1;
  size_t warmup_windows = 0;  // warm-up windows to discard
  size_t most_windows = 40;   // limit of one search with noisy scores; else 16
  Prediction predicted;
  // Points that were good elsewhere: tried first.
  std::vector<TunePoint> promising;
};

struct Trial {
  enum class Kind { kWarmup, kDefault, kIncumbent, kCandidate, kSettled, kCheck };
  TunePoint point;
  Kind kind = Kind::kWarmup;
};
std::string_view NameOf(Trial::Kind kind);

// The result of a search.
struct TuningResult {
  TunePoint point;
  bool gained = false;  // false: `point` is the default
  // Relative gain over the default, and its 95 % interval.
  double gain = 0, gain_low = 0, gain_high = 0;
  double noise = 0;  // of one window, relative
  size_t windows = 0, points = 0;
  std::string_view why_over;  // "because ..."
};

class Tuner {
 public:
  Tuner(SearchSpace space, TunerOptions options);

  const Trial& trial() const { return trial_; }
  // The score of a window with trial().point, larger is better. Ignores scores that are not finite
  // or not above 0.
  void Record(double score);

  // `known`, a point of the space, was the result of an earlier search: it is first compared with
  // the default in a few windows. If it is better again, the search ends with it. If it is the
  // default itself, nothing is tried. No effect after the search.
  void Verify(const TunePoint& known);

  // Replaces the prediction, also for points already measured. Call early: a prediction affects
  // what is tried next.
  void Predict(Prediction predicted);

  // The search is over.
  bool settled() const {
    return trial_.kind == Trial::Kind::kSettled || trial_.kind == Trial::Kind::kCheck;
  }
  size_t searches() const { return searches_; }  // started so far
  // The best result so far.
  TuningResult result() const;

  // The noiseless speed of a point and its standard deviation, relative to the default's. 1 and 0
  // until the default was measured.
  struct Expectation {
    double mean = 1, deviation = 0;
  };
  Expectation Expect(const TunePoint& point) const;
  const SearchSpace& space() const { return space_; }

 private:
  struct Tried {
    TunePoint point;
    Observation seen;
    size_t missing = 0;

    bool measured() const { return seen.count > 0; }
  };

  double Offset(const TunePoint& point) const;
  size_t Find(const TunePoint& point);
  GaussianProcess::Estimate At(size_t tried) const;
  double Noise() const;
  bool Proven(size_t tried, double deviations) const;
  size_t Best(double caution, double deviations) const;
  void Learn(double value);
  void Watch(double value);
  void Next();
  void Run(size_t tried, Trial::Kind kind);
  void RunSafe();
  bool RunKnown();
  bool RunChallenger();
  bool RunCandidate();
  bool RunDoubtful();
  double Worth(const std::vector<double>& unit, double least) const;
  std::vector<double> Refined(std::vector<double> unit, double least) const;
  std::vector<std::vector<double>> Pool();
  void Settle(std::string_view why, std::optional<size_t> verified = {});
  void BeginAgain();

  SearchSpace space_;
  TunerOptions options_;
  std::mt19937_64 random_;
  GaussianProcess process_;
  std::vector<Tried> tried_;  // the first is the default
  size_t running_ = 0;        // of tried_
  size_t incumbent_ = 0;      // the best proven point
  size_t warmups_left_ = 0, windows_ = 0, missing_in_a_row_ = 0;
  size_t searches_ = 1;
  std::vector<TunePoint> promising_;
  std::optional<size_t> known_;  // of tried_
  DriftWatch drift_;
  size_t settled_ = 0;  // of tried_
  double settled_level_ = 0;
  std::optional<Duel> duel_;  // under way
  double default_value_ = 0;  // of the duel's last window with the default
  std::string_view why_over_;
  Trial trial_;
};

}  // namespace hvd

#endif  // HVD_AUTOTUNE_TUNER_H_
