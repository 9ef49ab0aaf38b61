// Duel: decides whether a choice is still better than the default, by alternating windows of both.
#ifndef HVD_AUTOTUNE_DUEL_H_
#define HVD_AUTOTUNE_DUEL_H_

#include <cmath>
#include <cstddef>

namespace hvd {

class Duel {
 public:
  // `noise`: the standard deviation of one value.
  explicit Duel(double noise) : noise_(noise) {}

  enum class Verdict { kOpen, kChoice, kDefault };
  // Adds one value of each: logarithms of scores.
  Verdict Add(double choice, double reference) {
    ahead_ += choice - reference;
    ++rounds_;
    const double deviation = noise_ * std::sqrt(2 * static_cast<double>(rounds_));
    if (rounds_ < kMost && std::abs(ahead_) < kSure * deviation) return Verdict::kOpen;
    return ahead_ >= kAhead * deviation ? Verdict::kChoice : Verdict::kDefault;
  }

 private:
  static constexpr size_t kMost = 12;
  // In standard deviations. A choice that is barely ahead at the end may soon fall behind.
  static constexpr double kSure = 1.5, kAhead = 0.7;

  double noise_;
  size_t rounds_ = 0;
  double ahead_ = 0;
};

}  // namespace hvd

#endif  // HVD_AUTOTUNE_DUEL_H_
