#include "launcher/job/policy/job_policy.h"

#include <chrono>
#include <string>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

Duration Seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Its processes can only be in the world in which they were started.
Status CheckStock(const Settings& settings) {
  if (settings.spares > 0)
    return InvalidArgument(
        "--spares and --stock-horovod exclude each other: a worker of stock Horovod cannot wait "
        "for a rank; leave --spares out");
  if (settings.keep_commits_bytes > 0)
    return InvalidArgument(
        "--keep-commits and --stock-horovod exclude each other: stock Horovod keeps its commits in "
        "its workers; leave --keep-commits out");
  if (settings.elastic_restart != RestartMode::kInProcess) return Status::Ok();
  return InvalidArgument(
      "--elastic-restart in-process and --stock-horovod exclude each other: where ranks come or "
      "go, all workers of stock Horovod are started again; leave --elastic-restart out");
}

Status CheckOrder(const Settings& settings) {
  const std::string np = Format("-np {}", settings.num_proc);
  if (settings.min_num_proc > settings.num_proc) {
    return InvalidArgument(Format(
        "--min-np {} is more than {}, with which the job starts; try --min-np {}, or a larger -np",
        settings.min_num_proc, np, settings.num_proc));
  }
  if (settings.max_num_proc != 0 && settings.max_num_proc < settings.num_proc) {
    return InvalidArgument(Format(
        "--max-np {} is less than {}, with which the job starts; try --max-np {}, or a smaller -np",
        settings.max_num_proc, np, settings.num_proc));
  }
  return Status::Ok();
}

}  // namespace

JobPolicy FixedPolicy(uint32_t ranks) {
  JobPolicy policy;
  policy.min_np = policy.np = policy.max_np = ranks;
  policy.restart = RestartMode::kInProcess;
  return policy;
}

JobPolicy ElasticPolicy(uint32_t min_np, uint32_t np, uint32_t max_np) {
  JobPolicy policy;
  policy.finds_hosts = true;
  policy.ranks_change = true;
  policy.outlives_losses = true;
  policy.stops_at_commit = true;
  policy.serves_while_ending = false;
  policy.measures_training = true;
  policy.min_np = min_np;
  policy.np = np;
  policy.max_np = max_np;
  return policy;
}

Result<JobPolicy> PolicyOf(const Settings& settings) {
  const Result<FailureLimit> failures = ParseFailureLimit(settings.max_failures);
  if (!failures.ok()) return failures.status();
  const auto np = static_cast<uint32_t>(settings.num_proc);
  if (!IsElastic(settings)) return FixedPolicy(np);
  HVD_RETURN_IF_ERROR(CheckOrder(settings));
  if (settings.stock_horovod) {
    if (Status stock = CheckStock(settings); !stock.ok()) return stock;
  }
  JobPolicy policy = ElasticPolicy(np, np, np);
  if (settings.min_num_proc != 0) policy.min_np = static_cast<uint32_t>(settings.min_num_proc);
  if (settings.max_num_proc != 0) policy.max_np = static_cast<uint32_t>(settings.max_num_proc);
  policy.elastic_timeout = Seconds(settings.elastic_timeout);
  policy.init_timeout = Seconds(settings.init_timeout);
  if (settings.reset_limit >= 0) policy.reset_limit = static_cast<uint32_t>(settings.reset_limit);
  if (const IntRange& range = settings.blacklist_cooldown_range; range.given()) {
    policy.cooldown = {std::chrono::seconds(range.lo), std::chrono::seconds(range.hi)};
  }
  policy.failures = *failures;
  policy.spares = static_cast<uint32_t>(settings.spares);
  policy.restart = settings.stock_horovod ? RestartMode::kInJob : settings.elastic_restart;
  policy.commit_bytes = settings.keep_commits_bytes;
  return policy;
}

}  // namespace hvd
