#include "launcher/doctor/report/doctor_text.h"

#include <initializer_list>

#include "launcher/doctor/report/host_facts.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Uses the first unit in which the value is below `step`, with at least two digits.
std::string Scaled(double value, double step, std::initializer_list<const char*> units) {
  const char* const* unit = units.begin();
  while (value >= step * 0.9995 && unit + 1 != units.end()) {
    value /= step;
    ++unit;
  }
  return Format("{:.{}f} {}", value, value < 9.95 && unit != units.begin() ? 1 : 0, *unit);
}

}  // namespace

std::string BytesText(uint64_t bytes) {
  if (bytes == kUnlimited) return "unlimited";
  return Scaled(static_cast<double>(bytes), 1024, {"bytes", "KiB", "MiB", "GiB", "TiB"});
}

std::string CountText(uint64_t count) {
  return count == kUnlimited ? "unlimited" : std::to_string(count);
}

std::string SpeedText(double bytes_a_second) {
  return Scaled(bytes_a_second, 1000, {"B/s", "kB/s", "MB/s", "GB/s"});
}

std::string TimeText(Duration duration) {
  return Scaled(static_cast<double>(duration.count()) / 1e3, 1000, {"us", "ms", "s"});
}

std::string SignedTimeText(Duration duration) {
  const std::string text = TimeText(duration < Duration::zero() ? -duration : duration);
  const bool is_zero = text.find_first_of("123456789") == std::string::npos;
  return (is_zero ? "" : duration < Duration::zero() ? "-" : "+") + text;
}

}  // namespace hvd
