#include "runtime/trace/ticks.h"

#include "runtime/base/clock.h"
#include "runtime/base/read_file.h"

namespace hvd {
namespace {

TraceClock FindClock() {
#if defined(__x86_64__)
  constexpr const char* kSource =
      "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  constexpr ReadLimits kLimits{4096, std::chrono::seconds(1)};
  const Result<std::string> source = ReadFileWithin(kSource, kLimits);
  if (source.ok() && source->starts_with("tsc")) return TraceClock::kTsc;
#endif
  return TraceClock::kSteadyNs;
}

}  // namespace

int64_t SteadyNanoseconds() { return SteadyNow().time_since_epoch().count(); }

TraceClock BestTraceClock() {
  static const TraceClock clock = FindClock();
  return clock;
}

}  // namespace hvd
