// GaussianProcess: estimates the values of unmeasured points. Matern 5/2 kernel with a length scale
// per dimension; scales, amplitude and noise are MAP estimates under weak priors. Repeated
// measurements of a point determine the noise.
#ifndef HVD_AUTOTUNE_GAUSSIAN_PROCESS_H_
#define HVD_AUTOTUNE_GAUSSIAN_PROCESS_H_

#include <cstddef>
#include <memory>
#include <random>
#include <vector>

namespace hvd {

// All measurements of one point.
struct Observation {
  std::vector<double> x;  // unit coordinates
  double offset = 0;      // prior mean, which the process corrects
  double count = 0, mean = 0;
  double squares = 0;  // sum of squared deviations from the mean

  void Add(double value);
};

class GaussianProcess {
 public:
  // `categories`: dimensions in which all distinct values are equidistant.
  explicit GaussianProcess(std::vector<bool> categories);
  ~GaussianProcess();

  // Fits at least one observation, each with count > 0, at distinct points.
  void Fit(std::vector<Observation> observations, std::mt19937_64& random);

  struct Estimate {
    double mean = 0, deviation = 0;
  };
  // The posterior of the noiseless value, including the offset. After Fit.
  Estimate At(const std::vector<double>& x, double offset) const;
  // The standard deviation of one measurement.
  double noise() const;

  // Noisy expected improvement: the mean improvement of `x` over the best observed point, averaged
  // over the posterior of the observed points.
  double Improvement(const std::vector<double>& x, double offset) const;

 private:
  struct Fitted;

  std::vector<bool> categories_;
  std::vector<double> theta_;  // logarithms: scales, amplitude, noise
  std::unique_ptr<Fitted> fitted_;
};

}  // namespace hvd

#endif  // HVD_AUTOTUNE_GAUSSIAN_PROCESS_H_
