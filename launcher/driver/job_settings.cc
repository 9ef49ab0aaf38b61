#include "launcher/driver/job_settings.h"

#include <algorithm>

#include "runtime/base/test_env.h"

namespace hvd {
namespace {

// There is no network to fail on this machine: a silent agent has been stopped, and may be
// continued.
constexpr int kSilentSecondsHere = 30;

}  // namespace

Duration SecondsOf(double seconds) {
  constexpr double kLongest = 1e9;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

int64_t ScriptWarningMs(const Settings& settings) {
  if (!settings.stall_check) return 0;
  const int64_t seconds = settings.stall_warning_seconds > 0 ? settings.stall_warning_seconds
                                                             : settings.stall_shutdown_seconds;
  return seconds * 1000;
}

JobOptions JobOptionsOf(const DriverOptions& driver) {
  const Settings& settings = driver.settings;
  JobOptions options;
  options.stages = driver.stage_limits;
  options.prove_addresses = driver.any_remote();
  options.relay = settings.relay != RelayUse::kNever && !settings.stock_horovod;
  options.terminate_grace = SecondsOf(settings.terminate_grace_seconds);
  options.launcher = RankLauncherOf(settings);
  options.start_timeout = SecondsOf(settings.start_timeout_seconds);
  options.timeout = SecondsOf(settings.timeout_seconds);
  auto usual_ms = std::chrono::duration_cast<std::chrono::milliseconds>(options.init_watch).count();
  options.init_watch =
      std::chrono::milliseconds(TestNumber("HVD_TEST_INIT_WATCH_MS", static_cast<int>(usual_ms)));
  return options;
}

Heartbeat HeartbeatOf(const Settings& settings, bool remote) {
  Heartbeat heartbeat;
  int limit = kSilentSecondsHere;
  if (remote) {
    limit = std::max(1, static_cast<int>(settings.heartbeat_timeout_seconds));
    heartbeat.every = std::min<Duration>(heartbeat.every, std::chrono::milliseconds(limit * 200));
  }
  heartbeat.limit_seconds = TestNumber("HVD_TEST_SILENT_SECONDS", limit);
  heartbeat.grace = SecondsOf(settings.driver_grace_seconds);
  return heartbeat;
}

int64_t DriverGraceMs(const DriverOptions& options) {
  const double grace = options.successor_key.empty() ? options.settings.driver_grace_seconds
                                                     : options.successor_grace_seconds;
  return static_cast<int64_t>(grace * 1e3);
}

Duration RouteSilenceLimit(const Settings& settings) {
  return SecondsOf(std::max(settings.heartbeat_timeout_seconds, settings.driver_grace_seconds));
}

Duration LostParentLimit(const Settings& settings) {
  return SecondsOf(settings.heartbeat_timeout_seconds + 1);
}

}  // namespace hvd
