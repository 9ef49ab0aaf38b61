// Tuner: scores in, next settings out. Bayesian optimisation of measured/predicted, made for a job
// that is really running: every second window is one that is known to be fine, until the settings
// that are tried have proven to be.
//
// A window is a few steps with one choice of settings. The caller runs trial().point for a window,
// gives its score to Record, and goes on with the next trial(), for as long as the job lasts: when
// the search is over, the tuner watches, and begins again where the level of the scores changes.
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

// The score that is expected of a point, above 0, in any unit. Empty: nothing is known.
using Prediction = std::function<double(const TunePoint&)>;

struct TunerOptions {
  uint64_t seed = 1;
  size_t warmup_windows = 0;  // whose scores count for nothing
  size_t most_windows = 40;   // of one search, where they are noisy; else 16 at most
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

// How the search has come out.
struct TuningResult {
  TunePoint point;
  bool gained = false;  // false: `point` is the default
  // Better than the default by this part, and the interval that has it with 95 %.
  double gain = 0, gain_low = 0, gain_high = 0;
  double noise = 0;  // of one window, as a part
  size_t windows = 0, points = 0;
  std::string_view why_over;  // "because ..."
};

class Tuner {
 public:
  Tuner(SearchSpace space, TunerOptions options);

  const Trial& trial() const { return trial_; }
  // The score of a window with trial().point, larger is better. One that is not a number above 0
  // is none: nothing is learnt from it.
  void Record(double score);

  // `known`, a point of the space, was the result of an earlier search: before anything else is
  // tried, it is run in a few windows beside the default. Where it is better again, the search ends
  // with it. It may be the default itself: then nothing is tried. Without effect once the search is
  // over.
  void Verify(const TunePoint& known);

  // Replaces the prediction, for the points that were measured, too, by the results of the steps
  // before the search. Early is better: a prediction changes what is tried next.
  void Predict(Prediction predicted);

  // The search is over.
  bool settled() const {
    return trial_.kind == Trial::Kind::kSettled || trial_.kind == Trial::Kind::kCheck;
  }
  size_t searches() const { return searches_; }  // begun so far
  // The best that is known now.
  TuningResult result() const;

  // The speed of a point without noise, as a part of the default's, and its standard deviation as a
  // part of the default's. 1 and 0 while the default was not measured.
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
  size_t incumbent_ = 0;      // the best that is proven
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
