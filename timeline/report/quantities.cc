#include "timeline/report/quantities.h"

#include <cmath>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Three digits, in the largest unit of which there is at least one.
template <size_t kUnits>
std::string Scaled(double value, const char* const (&units)[kUnits]) {
  size_t unit = 0;
  const double sign = value < 0 ? -1 : 1;
  value = std::abs(value);
  for (; unit + 1 < kUnits && value >= 999.5; ++unit) value /= 1000;
  const int decimals = value >= 99.95 || unit == 0 ? 0 : value >= 9.995 ? 1 : 2;
  return Format("{:.{}f} {}", sign * value, decimals, units[unit]);
}

}  // namespace

std::string TimeText(int64_t ns) {
  return Scaled(static_cast<double>(ns), {"ns", "us", "ms", "s"});
}

std::string ShareText(double share) {
  const double percent = share * 100;
  return Format("{:.{}f} %", percent, percent > 0 && percent < 9.95 ? 1 : 0);
}

std::string BytesText(double bytes) { return Scaled(bytes, {"B", "kB", "MB", "GB", "TB"}); }

std::string RateText(double per_second) {
  return per_second > 0 ? BytesText(per_second) + "/s" : "-";
}

std::string CountText(uint64_t count, const char* one, const char* many) {
  return Format("{} {}", count, count == 1 ? one : many);
}

}  // namespace hvd
