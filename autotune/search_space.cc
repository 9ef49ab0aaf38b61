#include "autotune/search_space.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace hvd {
namespace {

Status Check(const TuneAxis& axis) {
  const auto refuse = [&](const std::string& why) {
    return InvalidArgument("the axis '" + axis.name + "' cannot be tuned: " + why);
  };
  if (!std::isfinite(axis.low) || !std::isfinite(axis.high) || axis.low > axis.high)
    return refuse("its limits are no range");
  if (axis.kind == TuneAxis::Kind::kLog && axis.low <= 0)
    return refuse("its lower limit has no logarithm");
  if (axis.kind == TuneAxis::Kind::kCategory && axis.low != 0)
    return refuse("categories count from 0");
  const bool within = axis.initial >= axis.low && axis.initial <= axis.high;
  if (!axis.pinned && !within) return refuse("its initial value is outside of its limits");
  return Status::Ok();
}

double Fraction(const TuneAxis& axis, double value) {
  if (axis.high == axis.low) return 0;
  if (axis.kind == TuneAxis::Kind::kLog)
    return std::log(value / axis.low) / std::log(axis.high / axis.low);
  return (value - axis.low) / (axis.high - axis.low);
}

double AtFraction(const TuneAxis& axis, double fraction) {
  fraction = std::clamp(fraction, 0.0, 1.0);
  if (axis.kind != TuneAxis::Kind::kLog)
    return std::round(axis.low + fraction * (axis.high - axis.low));
  const double value = axis.low * std::pow(axis.high / axis.low, fraction);
  return std::clamp(axis.whole ? std::round(value) : value, axis.low, axis.high);
}

}  // namespace

Result<SearchSpace> SearchSpace::Make(std::vector<TuneAxis> axes) {
  for (const TuneAxis& axis : axes) {
    if (Status checked = Check(axis); !checked.ok()) return checked;
  }
  return SearchSpace(std::move(axes));
}

SearchSpace::SearchSpace(std::vector<TuneAxis> axes) : axes_(std::move(axes)) {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!axes_[i].pinned && axes_[i].low < axes_[i].high) free_.push_back(i);
  }
}

TunePoint SearchSpace::initial() const {
  TunePoint point;
  for (const TuneAxis& axis : axes_) point.push_back(axis.initial);
  return point;
}

bool SearchSpace::IsCategory(size_t dimension) const {
  return axes_[free_[dimension]].kind == TuneAxis::Kind::kCategory;
}

std::vector<double> SearchSpace::ToUnit(const TunePoint& point) const {
  std::vector<double> unit;
  for (size_t i : free_) {
    const bool category = axes_[i].kind == TuneAxis::Kind::kCategory;
    unit.push_back(category ? point[i] : Fraction(axes_[i], point[i]));
  }
  return unit;
}

TunePoint SearchSpace::FromUnit(const std::vector<double>& unit) const {
  TunePoint point = initial();
  for (size_t d = 0; d < free_.size(); ++d) {
    const TuneAxis& axis = axes_[free_[d]];
    const bool category = axis.kind == TuneAxis::Kind::kCategory;
    point[free_[d]] =
        category ? std::clamp(std::round(unit[d]), axis.low, axis.high) : AtFraction(axis, unit[d]);
  }
  return point;
}

std::vector<double> SearchSpace::RandomUnit(std::mt19937_64& random) const {
  std::vector<double> unit;
  for (size_t i : free_) {
    const bool category = axes_[i].kind == TuneAxis::Kind::kCategory;
    const double fraction = UnitRandom(random);
    unit.push_back(category ? std::min(std::floor(fraction * (axes_[i].high + 1)), axes_[i].high)
                            : fraction);
  }
  return unit;
}

std::vector<double> SearchSpace::Nearby(std::vector<double> unit, double distance,
                                        std::mt19937_64& random) const {
  for (size_t d = 0; d < unit.size(); ++d) {
    if (IsCategory(d)) {
      if (UnitRandom(random) < 0.2) unit[d] = RandomUnit(random)[d];
    } else {
      unit[d] = std::clamp(unit[d] + distance * NormalRandom(random), 0.0, 1.0);
    }
  }
  return unit;
}

double UnitRandom(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

double NormalRandom(std::mt19937_64& random) {
  const double radius = std::sqrt(-2 * std::log(1 - UnitRandom(random)));
  return radius * std::cos(2 * std::numbers::pi * UnitRandom(random));
}

}  // namespace hvd
