// SearchSpace: the values that may be chosen, axis by axis. A plain value.
#ifndef HVD_AUTOTUNE_SEARCH_SPACE_H_
#define HVD_AUTOTUNE_SEARCH_SPACE_H_

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

struct TuneAxis {
  enum class Kind {
    kLog,       // a number on a logarithmic scale
    kInteger,   // a whole number on a linear scale
    kCategory,  // 0, 1, ... `high`: unordered
  };
  std::string name;
  Kind kind = Kind::kLog;
  double low = 1, high = 1;  // inclusive; above 0 for kLog
  double initial = 1;        // the value without tuning
  bool whole = false;        // kLog: whole numbers only
  bool pinned = false;       // stays at `initial`
};

// A value for each axis, in the axes' own units.
using TunePoint = std::vector<double>;

class SearchSpace {
 public:
  // kInvalidArgument names the axis if limits, kind and initial value are inconsistent.
  static Result<SearchSpace> Make(std::vector<TuneAxis> axes);

  const std::vector<TuneAxis>& axes() const { return axes_; }
  TunePoint initial() const;
  // The axes that are not pinned, in order: the coordinates of a unit point.
  size_t dimensions() const { return free_.size(); }
  bool IsCategory(size_t dimension) const;

  // 0 to 1 in each dimension; the number of a category.
  std::vector<double> ToUnit(const TunePoint& point) const;
  // The nearest valid point. Clamps coordinates to 0 to 1.
  TunePoint FromUnit(const std::vector<double>& unit) const;
  // Uniformly distributed.
  std::vector<double> RandomUnit(std::mt19937_64& random) const;
  // `unit` with the coordinates of some dimensions changed a little.
  std::vector<double> Nearby(std::vector<double> unit, double distance,
                             std::mt19937_64& random) const;

 private:
  explicit SearchSpace(std::vector<TuneAxis> axes);

  std::vector<TuneAxis> axes_;
  std::vector<size_t> free_;
};

// Uniform in 0 to 1 and reproducible everywhere, unlike the distributions of the standard library,
// which differ between implementations.
double UnitRandom(std::mt19937_64& random);
// Standard normal distribution.
double NormalRandom(std::mt19937_64& random);

}  // namespace hvd

#endif  // HVD_AUTOTUNE_SEARCH_SPACE_H_
