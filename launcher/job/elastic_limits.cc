#include "launcher/job/elastic_limits.h"

#include <chrono>
#include <string>

namespace hvd {
namespace {

Duration Seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

RestartMode RestartModeOf(const std::string& name) {
  if (name == "in-process") return RestartMode::kInProcess;
  return name == "in-job" ? RestartMode::kInJob : RestartMode::kAuto;
}

Status CheckOrder(const Settings& settings) {
  const std::string np = "-np " + std::to_string(settings.num_proc);
  if (settings.min_num_proc > settings.num_proc) {
    return InvalidArgument("--min-np " + std::to_string(settings.min_num_proc) + " is more than " +
                           np + ", with which the job starts; try --min-np " +
                           std::to_string(settings.num_proc) + ", or a larger -np");
  }
  if (settings.max_num_proc != 0 && settings.max_num_proc < settings.num_proc) {
    return InvalidArgument("--max-np " + std::to_string(settings.max_num_proc) + " is less than " +
                           np + ", with which the job starts; try --max-np " +
                           std::to_string(settings.num_proc) + ", or a smaller -np");
  }
  return Status::Ok();
}

}  // namespace

Result<ElasticLimits> ElasticLimitsOf(const Settings& settings) {
  const Result<FailureLimit> failures = ParseFailureLimit(settings.max_failures);
  if (!failures.ok()) return failures.status();
  const auto np = static_cast<uint32_t>(settings.num_proc);
  ElasticLimits limits{.min_np = np, .np = np, .max_np = np};
  if (!IsElastic(settings)) return limits;
  if (Status order = CheckOrder(settings); !order.ok()) return order;
  limits.elastic = true;
  if (settings.min_num_proc != 0) limits.min_np = static_cast<uint32_t>(settings.min_num_proc);
  if (settings.max_num_proc != 0) limits.max_np = static_cast<uint32_t>(settings.max_num_proc);
  limits.elastic_timeout = Seconds(settings.elastic_timeout);
  if (settings.reset_limit >= 0) limits.reset_limit = static_cast<uint32_t>(settings.reset_limit);
  if (const IntRange& range = settings.blacklist_cooldown_range; range.given()) {
    limits.cooldown = {std::chrono::seconds(range.lo), std::chrono::seconds(range.hi)};
  }
  limits.failures = *failures;
  limits.spares = static_cast<uint32_t>(settings.spares);
  limits.restart = RestartModeOf(settings.elastic_restart);
  return limits;
}

}  // namespace hvd
