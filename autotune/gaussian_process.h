// GaussianProcess: the likely value of points that were not measured. Matern 5/2 with a length
// scale per dimension; scales, amplitude and noise are the likeliest under mild priors. Several
// measurements of one point teach the noise.
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
  double offset = 0;      // the expectation, which the process corrects
  double count = 0, mean = 0;
  double squares = 0;  // sum of squared deviations from the mean

  void Add(double value);
};

class GaussianProcess {
 public:
  // `categories`: dimensions in which any two different values are equally far apart.
  explicit GaussianProcess(std::vector<bool> categories);
  ~GaussianProcess();

  // Learns from observations, at least one, with count > 0. Their points differ.
  void Fit(std::vector<Observation> observations, std::mt19937_64& random);

  struct Estimate {
    double mean = 0, deviation = 0;
  };
  // Of the value without noise, offset included. After Fit.
  Estimate At(const std::vector<double>& x, double offset) const;
  // The standard deviation of one measurement.
  double noise() const;

  // Noisy expected improvement: how much better than the best observed point `x` is on average,
  // over the values that the observed points may really have.
  double Improvement(const std::vector<double>& x, double offset) const;

 private:
  struct Fitted;

  std::vector<bool> categories_;
  std::vector<double> theta_;  // logarithms: scales, amplitude, noise
  std::unique_ptr<Fitted> fitted_;
};

}  // namespace hvd

#endif  // HVD_AUTOTUNE_GAUSSIAN_PROCESS_H_
