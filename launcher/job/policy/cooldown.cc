#include "launcher/job/policy/cooldown.h"

#include <algorithm>
#include <cmath>

namespace hvd {

Duration CooldownAfter(const CooldownRange& range, uint32_t failures, double jitter) {
  const auto lo = static_cast<double>(range.lo.count());
  const double delay = std::ldexp(lo, static_cast<int>(std::min(failures, 64U))) + jitter * lo;
  // Compared as a double, which holds more than a Duration does.
  if (delay >= static_cast<double>(range.hi.count())) return range.hi;
  return std::max(range.lo, Duration(static_cast<Duration::rep>(delay)));
}

}  // namespace hvd
