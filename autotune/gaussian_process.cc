// The only file with Eigen.
#include "autotune/gaussian_process.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "autotune/minimiser.h"
#include "autotune/search_space.h"

namespace hvd {
namespace {

using Eigen::ArrayXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Factor = Eigen::LLT<MatrixXd>;

constexpr int kMostSteps = 40;
constexpr size_t kDraws = 16;
constexpr double kJitter = 1e-6;
// Relative error that expected differences may have.
constexpr double kDistrust = 0.4;

// The prior of a logarithm: a normal distribution.
struct Belief {
  double centre, width;
};
const Belief kScale{std::log(0.5), 0.7};
const Belief kAmplitude{std::log(0.2), 0.4};
const Belief kNoise{std::log(0.03), 0.8};
constexpr double kFarthest = 5;  // widths from the centre

// Squared distance in one dimension.
double Apart(double a, double b, bool category) {
  if (category) return a == b ? 0 : 1;
  return (a - b) * (a - b);
}

double Matern(double squared) {
  const double r = std::sqrt(5 * squared);
  return (1 + r + r * r / 3) * std::exp(-r);
}

// The derivative of the Matern kernel by the logarithm of a scale is this times the squared
// distance along it.
double MaternSlope(double squared) {
  const double r = std::sqrt(5 * squared);
  return 5.0 / 3 * (1 + r) * std::exp(-r);
}

double BelowNormal(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }
double NormalDensity(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }

}  // namespace

void Observation::Add(double value) {
  count += 1;
  const double moved = value - mean;
  mean += moved / count;
  squares += moved * (value - mean);
}

// The observations and all quantities derived from them for one choice of parameters.
struct GaussianProcess::Fitted {
  std::vector<Observation> observed;
  std::vector<bool> categories;
  std::vector<double> scales;
  double amplitude = 0, noise = 0, centre = 0;
  Factor factor;          // of the covariance of the measurements
  VectorXd weights;       // its inverse, applied to the measurements
  Factor noiseless;       // of the covariance of the values
  MatrixXd draw_weights;  // the same for values that were drawn, one per column
  VectorXd best_draws;

  double Squared(const std::vector<double>& a, const std::vector<double>& b) const {
    double sum = 0;
    for (size_t d = 0; d < scales.size(); ++d)
      sum += Apart(a[d], b[d], categories[d]) / (scales[d] * scales[d]);
    return sum;
  }

  void Use(const std::vector<double>& theta) {
    const size_t dimensions = categories.size();
    scales.resize(dimensions);
    for (size_t d = 0; d < dimensions; ++d) scales[d] = std::exp(theta[d]);
    amplitude = std::exp(theta[dimensions]);
    noise = std::exp(theta[dimensions + 1]);
  }

  // The covariance of the corrections at points with these offsets: the part by which all expected
  // differences are too large or too small.
  double Shared(double a, double b) const {
    const double from = observed.front().offset;
    return kDistrust * kDistrust * (a - from) * (b - from);
  }

  MatrixXd Correlated() const {
    const auto size = static_cast<Eigen::Index>(observed.size());
    MatrixXd covariance(size, size);
    for (Eigen::Index i = 0; i < size; ++i) {
      for (Eigen::Index j = 0; j <= i; ++j) {
        covariance(i, j) = covariance(j, i) =
            amplitude * amplitude *
            Matern(Squared(observed[static_cast<size_t>(i)].x, observed[static_cast<size_t>(j)].x));
      }
    }
    return covariance;
  }

  MatrixXd Covariance() const {
    MatrixXd covariance = Correlated();
    for (Eigen::Index i = 0; i < covariance.rows(); ++i) {
      for (Eigen::Index j = 0; j < covariance.rows(); ++j) {
        covariance(i, j) += Shared(observed[static_cast<size_t>(i)].offset,
                                   observed[static_cast<size_t>(j)].offset);
      }
    }
    return covariance;
  }

  VectorXd CovarianceWith(const std::vector<double>& x, double offset) const {
    VectorXd with(static_cast<Eigen::Index>(observed.size()));
    for (Eigen::Index i = 0; i < with.size(); ++i) {
      const Observation& seen = observed[static_cast<size_t>(i)];
      with[i] = amplitude * amplitude * Matern(Squared(seen.x, x)) + Shared(seen.offset, offset);
    }
    return with;
  }

  // The variance at a point before anything was measured.
  double Variance(double offset) const { return amplitude * amplitude + Shared(offset, offset); }

  VectorXd Corrections() const {
    VectorXd corrections(static_cast<Eigen::Index>(observed.size()));
    for (Eigen::Index i = 0; i < corrections.size(); ++i) {
      const Observation& o = observed[static_cast<size_t>(i)];
      corrections[i] = o.mean - o.offset;
    }
    return corrections;
  }

  // False if the matrix has no Cholesky factor.
  bool Solve(const MatrixXd& covariance) {
    MatrixXd measured = covariance;
    for (Eigen::Index i = 0; i < measured.rows(); ++i)
      measured(i, i) += noise * noise / observed[static_cast<size_t>(i)].count + 1e-12;
    factor.compute(measured);
    if (factor.info() != Eigen::Success) return false;
    const VectorXd ones = VectorXd::Ones(measured.rows());
    const VectorXd corrections = Corrections(), solved = factor.solve(ones);
    centre = solved.dot(corrections) / solved.dot(ones);
    weights = factor.solve(corrections - centre * ones);
    return true;
  }

  double Unlikelihood(const std::vector<double>& theta, std::vector<double>* gradient);
  void DrawValues(const MatrixXd& covariance, std::mt19937_64& random);
};

namespace {

double AddBelief(const Belief& belief, double value, double* gradient) {
  const double z = (value - belief.centre) / belief.width;
  *gradient += z / belief.width;
  return z * z / 2;
}

}  // namespace

// The negative log-likelihood, including the priors.
double GaussianProcess::Fitted::Unlikelihood(const std::vector<double>& theta,
                                             std::vector<double>* gradient) {
  const size_t dimensions = categories.size();
  std::fill(gradient->begin(), gradient->end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < theta.size(); ++i) {
    const Belief& belief = i < dimensions ? kScale : i == dimensions ? kAmplitude : kNoise;
    if (std::abs(theta[i] - belief.centre) > kFarthest * belief.width)
      return std::numeric_limits<double>::infinity();
    sum += AddBelief(belief, theta[i], &(*gradient)[i]);
  }
  Use(theta);
  const MatrixXd covariance = Covariance();
  if (!Solve(covariance)) return std::numeric_limits<double>::infinity();

  const Eigen::Index size = covariance.rows();
  const VectorXd residual = Corrections() - centre * VectorXd::Ones(size);
  const MatrixXd inverse = factor.solve(MatrixXd::Identity(size, size));
  const MatrixXd outer = inverse - weights * weights.transpose();
  sum += residual.dot(weights) / 2;
  for (Eigen::Index i = 0; i < size; ++i) sum += std::log(factor.matrixLLT()(i, i));
  (*gradient)[dimensions] += (outer.array() * Correlated().array()).sum();
  for (Eigen::Index i = 0; i < size; ++i) {
    const Observation& a = observed[static_cast<size_t>(i)];
    // The likelihood of the spread of repeated measurements, which depends on the noise alone.
    sum += (a.count - 1) * theta[dimensions + 1] + a.squares / (2 * noise * noise);
    (*gradient)[dimensions + 1] +=
        a.count - 1 - a.squares / (noise * noise) + outer(i, i) * noise * noise / a.count;
    for (Eigen::Index j = 0; j < i; ++j) {
      const Observation& b = observed[static_cast<size_t>(j)];
      const double slope = outer(i, j) * amplitude * amplitude * MaternSlope(Squared(a.x, b.x));
      for (size_t d = 0; d < dimensions; ++d)
        (*gradient)[d] += slope * Apart(a.x[d], b.x[d], categories[d]) / (scales[d] * scales[d]);
    }
  }
  return sum;
}

// Draws possible true values of the observed points, and the best value of each draw.
void GaussianProcess::Fitted::DrawValues(const MatrixXd& covariance, std::mt19937_64& random) {
  const Eigen::Index size = covariance.rows();
  const double jitter = kJitter * amplitude * amplitude;
  const MatrixXd eye = MatrixXd::Identity(size, size);
  noiseless.compute(covariance + jitter * eye);
  const Factor spread(covariance - covariance * factor.solve(covariance) + jitter * eye);
  const VectorXd middle = covariance * weights;
  draw_weights.resize(size, kDraws);
  best_draws.resize(kDraws);
  for (Eigen::Index k = 0; k < static_cast<Eigen::Index>(kDraws); ++k) {
    VectorXd drawn(size);
    for (Eigen::Index i = 0; i < size; ++i) drawn[i] = NormalRandom(random);
    if (spread.info() == Eigen::Success) {
      drawn = middle + spread.matrixL() * drawn;
    } else {
      drawn = middle;
    }
    draw_weights.col(k) = noiseless.solve(drawn);
    double best = -std::numeric_limits<double>::infinity();
    for (Eigen::Index i = 0; i < size; ++i)
      best = std::max(best, drawn[i] + observed[static_cast<size_t>(i)].offset);
    best_draws[k] = best + centre;
  }
}

GaussianProcess::GaussianProcess(std::vector<bool> categories)
    : categories_(std::move(categories)), fitted_(std::make_unique<Fitted>()) {
  theta_.assign(categories_.size(), kScale.centre);
  theta_.push_back(kAmplitude.centre);
  theta_.push_back(kNoise.centre);
}

GaussianProcess::~GaussianProcess() = default;

void GaussianProcess::Fit(std::vector<Observation> observations, std::mt19937_64& random) {
  Fitted& fitted = *fitted_;
  fitted.observed = std::move(observations);
  fitted.categories = categories_;
  const SmoothFunction unlikelihood = [&](const std::vector<double>& x,
                                          std::vector<double>* gradient) {
    return fitted.Unlikelihood(x, gradient);
  };
  Minimum best = Minimise(unlikelihood, theta_, kMostSteps);
  // A second starting point, because the minimum found may be local.
  std::vector<double> start;
  for (size_t i = 0; i < theta_.size(); ++i) {
    const Belief& belief = i < categories_.size()    ? kScale
                           : i == categories_.size() ? kAmplitude
                                                     : kNoise;
    start.push_back(belief.centre + belief.width * (2 * UnitRandom(random) - 1));
  }
  Minimum other = Minimise(unlikelihood, std::move(start), kMostSteps);
  if (other.value < best.value || !std::isfinite(best.value)) best = std::move(other);
  theta_ = best.x;
  fitted.Use(theta_);
  const MatrixXd covariance = fitted.Covariance();
  fitted.Solve(covariance);
  fitted.DrawValues(covariance, random);
}

GaussianProcess::Estimate GaussianProcess::At(const std::vector<double>& x, double offset) const {
  const VectorXd with = fitted_->CovarianceWith(x, offset);
  const double variance = fitted_->Variance(offset) - with.dot(fitted_->factor.solve(with));
  return {offset + fitted_->centre + with.dot(fitted_->weights),
          std::sqrt(std::max(variance, 0.0))};
}

double GaussianProcess::noise() const { return fitted_->noise; }

double GaussianProcess::Improvement(const std::vector<double>& x, double offset) const {
  const VectorXd with = fitted_->CovarianceWith(x, offset);
  const double variance = fitted_->Variance(offset) - with.dot(fitted_->noiseless.solve(with));
  const double deviation = std::sqrt(std::max(variance, 1e-16));
  const VectorXd means = fitted_->draw_weights.transpose() * with;
  double sum = 0;
  for (Eigen::Index k = 0; k < means.size(); ++k) {
    const double ahead = means[k] + fitted_->centre + offset - fitted_->best_draws[k];
    const double z = ahead / deviation;
    sum += ahead * BelowNormal(z) + deviation * NormalDensity(z);
  }
  return sum / static_cast<double>(means.size());
}

}  // namespace hvd
