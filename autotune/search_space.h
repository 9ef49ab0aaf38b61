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
    kLog,       // a number; twice as much is as far everywhere
    kInteger,   // a whole number; one more is as far everywhere
    kCategory,  // 0, 1, ... `high`: none is nearer than another
  };
  std::string name;
  Kind kind = Kind::kLog;
  double low = 1, high = 1;  // inclusive; above 0 for kLog
  double initial = 1;        // the value without tuning
  bool whole = false;        // of kLog: whole numbers only
  bool pinned = false;       // stays at `initial`
};

// A value for each axis, in the axes' own units.
using TunePoint = std::vector<double>;

class SearchSpace {
 public:
  // kInvalidArgument with the axis where limits, kind and initial value do not go together.
  static Result<SearchSpace> Make(std::vector<TuneAxis> axes);

  const std::vector<TuneAxis>& axes() const { return axes_; }
  TunePoint initial() const;
  // The axes that are not pinned, in order: the coordinates of a unit point.
  size_t dimensions() const { return free_.size(); }
  bool IsCategory(size_t dimension) const;

  // 0 to 1 in each dimension; of a category its number.
  std::vector<double> ToUnit(const TunePoint& point) const;
  // The nearest point that can be chosen. Coordinates outside of 0 to 1 are moved to the border.
  TunePoint FromUnit(const std::vector<double>& unit) const;
  // Anywhere, evenly.
  std::vector<double> RandomUnit(std::mt19937_64& random) const;
  // `unit` with the coordinates of some dimensions changed a little.
  std::vector<double> Nearby(std::vector<double> unit, double distance,
                             std::mt19937_64& random) const;

 private:
  explicit SearchSpace(std::vector<TuneAxis> axes);

  std::vector<TuneAxis> axes_;
  std::vector<size_t> free_;
};

// From 0 to 1, the same for the same generator everywhere: the distributions of the standard
// library differ from one library to the next.
double UnitRandom(std::mt19937_64& random);
// Of mean 0 and variance 1.
double NormalRandom(std::mt19937_64& random);

}  // namespace hvd

#endif  // HVD_AUTOTUNE_SEARCH_SPACE_H_
