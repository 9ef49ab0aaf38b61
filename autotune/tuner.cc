#include "autotune/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "autotune/minimiser.h"

namespace hvd {
namespace {

const double kFarBelow = std::log(0.9);
// With fewer measurements of the same points than this, the noise may be larger than it looks.
constexpr double kKnownNoise = 3;
constexpr double kLeastUnknownNoise = 0.05;
constexpr double kLeastNoise = 1e-4;
constexpr size_t kLeastWindows = 6;
// A search ends after this many windows, unless they are so noisy that more are needed.
constexpr size_t kUsualWindows = 16;
constexpr double kNoisy = 0.08;
constexpr double kVerified = 3;      // windows of the default and of a known point
constexpr size_t kMostMissing = 10;  // in a row
constexpr size_t kPoolSize = 200, kNearby = 60, kRefined = 3;
// Explored points keep this distance from the ends of their axes, where a process knows least and
// settings are seldom best. Only points near a good one may be closer.
constexpr double kMargin = 0.15;
constexpr double kStopPart = 0.04;    // of the noise
constexpr double kStopGain = 0.0006;  // an expected gain that is not worth a window
// Standard deviations needed to keep searching around a point, and to choose it at the end; kAny:
// none.
constexpr double kProof = 3, kTrust = 0.5, kAny = -1e9;
constexpr double kClear = 0.035;  // noise up to which two windows are enough
constexpr double kLuck = 0.06;    // noise above which one window proves nothing
constexpr double kBeaten = 0.5;   // standard deviations
constexpr double kBad = 1.5;      // standard deviations
constexpr double kInterval = 1.96;

std::vector<bool> Categories(const SearchSpace& space) {
  std::vector<bool> categories;
  for (size_t d = 0; d < space.dimensions(); ++d) categories.push_back(space.IsCategory(d));
  return categories;
}

template <typename Tried>
std::vector<Observation> Measured(const std::vector<Tried>& all) {
  std::vector<Observation> measured;
  for (const Tried& tried : all) {
    if (tried.measured()) measured.push_back(tried.seen);
  }
  return measured;
}

// Repeated measurements of the same points: they show the noise.
template <typename Tried>
double Repeats(const std::vector<Tried>& all) {
  double repeats = 0;
  for (const Tried& tried : all) repeats += std::max(tried.seen.count - 1, 0.0);
  return repeats;
}

// Half of the 95 % interval of the difference between two means of windows.
double HalfInterval(double noise, const Observation& one, const Observation& other) {
  return kInterval * noise * std::sqrt(1 / one.count + 1 / other.count);
}

// The number of windows of a search that may have `most`.
size_t Planned(size_t most, double noise) {
  return noise > kNoisy ? most : std::min(most, kUsualWindows);
}

}  // namespace

std::string_view NameOf(Trial::Kind kind) {
  switch (kind) {
    case Trial::Kind::kWarmup: return "warm-up";
    case Trial::Kind::kDefault: return "default";
    case Trial::Kind::kIncumbent: return "incumbent";
    case Trial::Kind::kCandidate: return "candidate";
    case Trial::Kind::kSettled: return "best";
    case Trial::Kind::kCheck: return "check";
  }
  return "";
}

Tuner::Tuner(SearchSpace space, TunerOptions options)
    : space_(std::move(space)),
      options_(std::move(options)),
      random_(options_.seed),
      process_(Categories(space_)),
      warmups_left_(options_.warmup_windows),
      promising_(options_.promising),
      drift_(1) {
  Find(space_.initial());
  trial_ = {space_.initial(), Trial::Kind::kWarmup};
  if (space_.dimensions() == 0) {
    Settle("because there is nothing to choose");
  } else if (warmups_left_ == 0) {
    Run(0, Trial::Kind::kDefault);
  }
}

// ---- knowledge

double Tuner::Offset(const TunePoint& point) const {
  if (!options_.predicted) return 0;
  const double predicted = options_.predicted(point);
  return std::isfinite(predicted) && predicted > 0 ? std::log(predicted) : 0;
}

// The number of a point, which is added if it is new.
size_t Tuner::Find(const TunePoint& point) {
  for (size_t i = 0; i < tried_.size(); ++i) {
    if (tried_[i].point == point) return i;
  }
  Tried tried{point, {}, 0};
  tried.seen.x = space_.ToUnit(point);
  tried.seen.offset = Offset(point);
  tried_.push_back(std::move(tried));
  return tried_.size() - 1;
}

GaussianProcess::Estimate Tuner::At(size_t tried) const {
  return process_.At(tried_[tried].seen.x, tried_[tried].seen.offset);
}

double Tuner::Noise() const {
  const double repeats = Repeats(tried_);
  double squares = 0;
  for (const Tried& tried : tried_) squares += tried.seen.squares;
  const double seen = repeats == 0 ? 0 : std::sqrt(squares / repeats);
  const double noise = std::max({process_.noise(), seen, kLeastNoise});
  return repeats < kKnownNoise ? std::max(noise, kLeastUnknownNoise) : noise * (1 + 3 / repeats);
}

// Its own measurements show, with this many standard deviations, that it is not far below the
// default.
bool Tuner::Proven(size_t tried, double deviations) const {
  if (tried == 0) return true;
  const Observation &seen = tried_[tried].seen, &reference = tried_[0].seen;
  if (seen.count == 0 || reference.count == 0) return false;
  const bool luck = seen.count == 1 && (Noise() > kLuck || Repeats(tried_) < kKnownNoise);
  if (luck && deviations >= kProof) return false;
  const double deviation = Noise() * std::sqrt(1 / seen.count + 1 / reference.count);
  return seen.mean - reference.mean - deviations * deviation > kFarBelow;
}

// The best measured point that is proven with this many deviations; `caution`: number of deviations
// subtracted from its likely value.
size_t Tuner::Best(double caution, double deviations) const {
  // Its own windows show that it is worse than the best proven point, whatever the model expects.
  const auto beaten = [&](const Observation& seen) {
    const Observation& proven = tried_[incumbent_].seen;
    if (seen.count < 2 || proven.count < 2) return false;
    const double deviation = Noise() * std::sqrt(1 / seen.count + 1 / proven.count);
    return seen.mean - proven.mean < -kBeaten * deviation;
  };
  size_t best = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < tried_.size(); ++i) {
    if (!tried_[i].measured() || tried_[i].missing > 1 || !Proven(i, deviations)) continue;
    if (beaten(tried_[i].seen)) continue;
    const GaussianProcess::Estimate estimate = At(i);
    const double value = estimate.mean - caution * estimate.deviation;
    if (value > most) {
      most = value;
      best = i;
    }
  }
  return best;
}

TuningResult Tuner::result() const {
  TuningResult result;
  result.point = trial_.point;
  result.windows = windows_;
  result.why_over = why_over_;
  for (const Tried& tried : tried_) result.points += tried.measured() ? 1 : 0;
  if (!tried_[0].measured()) return result;
  const size_t best = settled() ? settled_ : incumbent_;
  result.point = tried_[best].point;
  result.noise = Noise();
  if (best == 0 || !tried_[best].measured()) return result;
  const double half = HalfInterval(result.noise, tried_[best].seen, tried_[0].seen);
  const double gain = At(best).mean - At(0).mean;
  result.gained = true;
  result.gain = std::expm1(gain);
  result.gain_low = std::expm1(gain - half);
  result.gain_high = std::expm1(gain + half);
  return result;
}

Tuner::Expectation Tuner::Expect(const TunePoint& point) const {
  if (!tried_[0].measured()) return {};
  const GaussianProcess::Estimate estimate = process_.At(space_.ToUnit(point), Offset(point));
  const double mean = std::exp(estimate.mean - At(0).mean);
  return {mean, mean * estimate.deviation};
}

// ---- scores

void Tuner::Verify(const TunePoint& known) {
  if (!settled()) known_ = Find(known);
}

void Tuner::Predict(Prediction predicted) {
  options_.predicted = std::move(predicted);
  for (Tried& tried : tried_) tried.seen.offset = Offset(tried.point);
  if (std::vector<Observation> measured = Measured(tried_); !measured.empty())
    process_.Fit(std::move(measured), random_);
}

void Tuner::Record(double score) {
  const bool missing = !std::isfinite(score) || score <= 0;
  if (trial_.kind == Trial::Kind::kWarmup) {
    if (--warmups_left_ == 0) Run(0, Trial::Kind::kDefault);
    return;
  }
  if (settled()) {
    if (!missing && tried_[0].measured()) Watch(std::log(score));
    return;
  }
  if (missing) {  // settings with which scores are missing are not tried a third time
    ++tried_[running_].missing;
    if (++missing_in_a_row_ >= kMostMissing || ++windows_ >= options_.most_windows)
      return Settle("because the windows had no scores");
    return RunSafe();
  }
  missing_in_a_row_ = 0;
  Learn(std::log(score));
}

void Tuner::Learn(double value) {
  ++windows_;
  Observation& seen = tried_[running_].seen;
  const bool steady = trial_.kind != Trial::Kind::kCandidate && seen.count >= 2;
  if (steady && drift_.Add((value - seen.mean) / (Noise() * std::sqrt(1 + 1 / seen.count))))
    return BeginAgain();
  seen.Add(value);
  process_.Fit(Measured(tried_), random_);
  Next();
}

// The search is over. Checks that the chosen point stays as good as it was: after a worse window,
// it alternates with the default until it is clear which of them is better now.
void Tuner::Watch(double value) {
  if (duel_ && running_ == 0) {
    default_value_ = value;
    return Run(settled_, Trial::Kind::kSettled);
  }
  if (duel_) {
    const Duel::Verdict verdict = duel_->Add(value, default_value_);
    if (verdict == Duel::Verdict::kOpen) return Run(0, Trial::Kind::kCheck);
    if (verdict == Duel::Verdict::kDefault) return BeginAgain();
    return duel_.reset();
  }
  const double limit = std::max(-kFarBelow / 2, kBad * process_.noise());
  if (drift_.Add(value)) return BeginAgain();
  if (settled_ == 0 || value > settled_level_ - limit) return;
  duel_.emplace(Noise());
  Run(0, Trial::Kind::kCheck);
}

// The measurements no longer hold; the best point may still be good.
void Tuner::BeginAgain() {
  const TunePoint best = tried_[settled() ? settled_ : incumbent_].point;
  promising_.assign(1, best);
  tried_.resize(1);
  tried_[0].seen.count = tried_[0].seen.mean = tried_[0].seen.squares = 0;
  drift_ = DriftWatch(1);
  windows_ = incumbent_ = missing_in_a_row_ = 0;
  known_.reset();
  duel_.reset();
  ++searches_;
  Run(0, Trial::Kind::kDefault);
}

// ---- the next window

void Tuner::Run(size_t tried, Trial::Kind kind) {
  running_ = tried;
  trial_ = {tried_[tried].point, kind};
}

void Tuner::Next() {
  for (size_t i = 0; i < tried_.size(); ++i) {
    if (!tried_[i].measured() || !Proven(i, kProof)) continue;
    if (At(i).mean > At(incumbent_).mean) incumbent_ = i;
  }
  if (!Proven(incumbent_, kProof)) incumbent_ = 0;
  if (windows_ >= Planned(options_.most_windows, Noise()))
    return Settle("because all windows were used");
  if (!Proven(running_, kProof)) return RunSafe();
  if (RunKnown() || RunChallenger() || RunCandidate() || RunDoubtful()) return;
  if (windows_ >= kLeastWindows) return Settle("because no gain above the noise is expected");
  RunSafe();
}

// Follows every window except those of points known to be good. Also shows how the level moves
// against which the others are compared.
void Tuner::RunSafe() {
  const double incumbent = tried_[incumbent_].seen.count, reference = tried_[0].seen.count;
  const bool compare = incumbent_ == 0 || reference < 3 || 2 * reference < incumbent;
  if (compare) return Run(0, Trial::Kind::kDefault);
  Run(incumbent_, Trial::Kind::kIncumbent);
}

// True: the next window verifies a known point, or the search has ended with it.
bool Tuner::RunKnown() {
  if (!known_) return false;
  const size_t known = *known_;
  const Observation &seen = tried_[known].seen, &reference = tried_[0].seen;
  const bool usable = tried_[known].missing <= 1;
  if (usable && seen.count < std::min(reference.count, kVerified)) {
    Run(known, Trial::Kind::kCandidate);
    return true;
  }
  if (usable && reference.count < kVerified) {
    Run(0, Trial::Kind::kDefault);
    return true;
  }
  known_.reset();
  if (!usable || (known != 0 && seen.mean <= reference.mean)) return false;
  Settle(known == 0 ? "because an earlier search found nothing better"
                    : "because the choice of an earlier search is better again",
         known);
  return true;
}

// The point that looks best, if it has not been measured often enough to be sure.
bool Tuner::RunChallenger() {
  const size_t best = Best(0, kAny);
  if (best == 0 || tried_[best].missing > 1) return false;
  const double needed = std::clamp(std::ceil(std::pow(process_.noise() / kClear, 2)), 2.0, 6.0);
  if (tried_[best].seen.count >= needed) return false;
  Run(best, best == incumbent_ ? Trial::Kind::kIncumbent : Trial::Kind::kCandidate);
  return true;
}

bool Tuner::RunCandidate() {
  while (!promising_.empty()) {
    const TunePoint point = space_.FromUnit(space_.ToUnit(promising_.front()));
    promising_.erase(promising_.begin());
    const size_t tried = Find(point);
    if (tried_[tried].measured()) continue;
    Run(tried, Trial::Kind::kCandidate);
    return true;
  }
  const double least = At(incumbent_).mean + kFarBelow;
  std::vector<std::pair<double, std::vector<double>>> ranked;
  for (std::vector<double>& unit : Pool()) {
    const double worth = Worth(unit, least);
    if (worth > 0) ranked.emplace_back(worth, std::move(unit));
  }
  const size_t refined = std::min(kRefined, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(refined),
                    ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  double most = std::max(kStopPart * Noise() / std::sqrt(2.0), kStopGain);
  std::optional<TunePoint> chosen;
  for (size_t i = 0; i < refined; ++i) {
    const TunePoint point = space_.FromUnit(Refined(ranked[i].second, least));
    const double worth = Worth(space_.ToUnit(point), least);
    if (worth <= most) continue;
    most = worth;
    chosen = point;
  }
  if (!chosen) return false;
  Run(Find(*chosen), Trial::Kind::kCandidate);
  return true;
}

// A likely but uncertain gain: measures the point and the default again, whichever has fewer
// windows, as long as the remaining windows may make it certain.
bool Tuner::RunDoubtful() {
  const size_t best = Best(0.5, kTrust);
  if (best == 0) return false;
  const Observation &seen = tried_[best].seen, &reference = tried_[0].seen;
  const double gain = At(best).mean - At(0).mean;
  const auto left = static_cast<double>(Planned(options_.most_windows, Noise()) - windows_);
  Observation equal = seen;
  equal.count = (seen.count + reference.count + left) / 2;
  const bool sure = gain > HalfInterval(Noise(), seen, reference);
  if (sure || gain <= HalfInterval(process_.noise(), equal, equal)) return false;
  if (reference.count <= seen.count) {
    Run(0, Trial::Kind::kDefault);
  } else {
    Run(best, best == incumbent_ ? Trial::Kind::kIncumbent : Trial::Kind::kCandidate);
  }
  return true;
}

// The expected improvement at a point; 0 if it may not be tried or was tried.
double Tuner::Worth(const std::vector<double>& unit, double least) const {
  const TunePoint point = space_.FromUnit(unit);
  for (const Tried& tried : tried_) {
    if (tried.point == point) return 0;
  }
  const double offset = Offset(point);
  if (process_.At(unit, offset).mean < least) return 0;
  return process_.Improvement(unit, offset);
}

std::vector<std::vector<double>> Tuner::Pool() {
  std::vector<std::vector<double>> pool;
  for (size_t i = 0; i < kPoolSize; ++i) {
    pool.push_back(space_.RandomUnit(random_));
    for (size_t d = 0; d < pool.back().size(); ++d) {
      double& x = pool.back()[d];
      if (!space_.IsCategory(d)) x = kMargin + (1 - 2 * kMargin) * x;
    }
  }
  const std::vector<double> best = tried_[Best(0, kAny)].seen.x;
  for (size_t i = 0; i < kNearby; ++i)
    pool.push_back(space_.Nearby(best, i % 2 == 0 ? 0.15 : 0.05, random_));
  for (std::vector<double>& unit : pool) unit = space_.ToUnit(space_.FromUnit(unit));
  return pool;
}

// Moves uphill along the axes that have a slope, and not into a margin unless it began there.
std::vector<double> Tuner::Refined(std::vector<double> unit, double least) const {
  constexpr double kStep = 1e-4;
  const auto allowed = [&](std::vector<double> x) {
    for (size_t d = 0; d < x.size(); ++d) {
      const double low = std::min(unit[d], kMargin), high = std::max(unit[d], 1 - kMargin);
      x[d] = space_.IsCategory(d) ? unit[d] : std::clamp(x[d], low, high);
    }
    return x;
  };
  const auto value = [&](const std::vector<double>& anywhere) {
    const std::vector<double> x = allowed(anywhere);
    const double worth = Worth(x, least);
    return worth > 0 ? -std::log(worth) : std::numeric_limits<double>::infinity();
  };
  const SmoothFunction function = [&](const std::vector<double>& x, std::vector<double>* gradient) {
    const double here = value(x);
    for (size_t d = 0; d < x.size(); ++d) {
      std::vector<double> next = x;
      const double step = x[d] + kStep > 1 ? -kStep : kStep;
      next[d] += step;
      const double slope = space_.IsCategory(d) ? 0 : (value(next) - here) / step;
      (*gradient)[d] = std::isfinite(slope) ? slope : 0;
    }
    return here;
  };
  return allowed(Minimise(function, unit, 10).x);
}

// Settles on the verified point; else on the one that looks best, if its gain is above the noise;
// else on the default.
void Tuner::Settle(std::string_view why, std::optional<size_t> verified) {
  why_over_ = why;
  size_t best = verified.value_or(0);
  if (tried_[0].measured()) {
    if (!verified) {
      best = Best(0.5, kTrust);
      const double gain = At(best).mean - At(0).mean;
      if (gain <= HalfInterval(Noise(), tried_[best].seen, tried_[0].seen)) best = 0;
    }
    settled_level_ = At(best).mean;
    drift_ = DriftWatch(Noise());
    for (int i = 0; i < 5; ++i) drift_.Add(settled_level_);
  }
  duel_.reset();
  settled_ = best;
  Run(best, Trial::Kind::kSettled);
}

}  // namespace hvd
