// DriftWatch: a Page-Hinkley test. Detects when values have left their previous level.
#ifndef HVD_AUTOTUNE_DRIFT_H_
#define HVD_AUTOTUNE_DRIFT_H_

#include <algorithm>
#include <cstddef>

namespace hvd {

class DriftWatch {
 public:
  // `noise`: the standard deviation of the values. Deviations below half of it are ignored; alarms
  // when deviations add up to ten times of it.
  explicit DriftWatch(double noise) : noise_(noise) {}

  // True: the level has changed, up or down.
  bool Add(double value) {
    // Limits the weight of a single outlier.
    const double moved = std::clamp(value - mean_, -kMost * noise_, kMost * noise_);
    if (count_ >= kSettling) {
      down_ = std::max(0.0, down_ - moved - kSlack * noise_);
      up_ = std::max(0.0, up_ + moved - kSlack * noise_);
    }
    ++count_;
    mean_ += (count_ == 1 ? value - mean_ : moved) / static_cast<double>(std::min(count_, kLong));
    return std::max(up_, down_) > kAlarm * noise_;
  }

 private:
  static constexpr size_t kSettling = 3, kLong = 50;
  static constexpr double kSlack = 0.5, kAlarm = 10, kMost = 5;

  double noise_;
  size_t count_ = 0;
  double mean_ = 0, down_ = 0, up_ = 0;
};

}  // namespace hvd

#endif  // HVD_AUTOTUNE_DRIFT_H_
