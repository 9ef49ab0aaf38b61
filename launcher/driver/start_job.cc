#include "launcher/driver/start_job.h"

#include <sys/resource.h>

#include <utility>

#include "launcher/agent/environment/worker_env.h"
#include "launcher/driver/job_settings.h"
#include "launcher/process/exec_size.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/spawn.h"
#include "runtime/base/text/format.h"
#include "runtime/net/mesh/mesh_address.h"

namespace hvd {
namespace {

TraceMode TraceModeOf(const Settings& settings) {
  if (!HasTimelineFile(settings)) return TraceMode::kOff;
  return settings.timeline_mark_cycles ? TraceMode::kWithCycles : TraceMode::kOn;
}

}  // namespace

StartJob CommonStart(const DriverOptions& options, const Plan& plan, const MasterAddress& master) {
  StartJob start;
  start.job_id = options.job_id;
  start.job_key = options.job_key;
  start.ranks.size = plan.size();
  start.ranks.homogeneous = plan.homogeneous ? 1 : 0;
  start.ranks.layout = plan.Layout();
  start.meeting.first_port = options.first_port;
  start.meeting.last_port = options.last_port;
  start.program.argv = options.command;
  start.program.directory = options.directory;
  start.program.function = options.function;
  start.program.environment = options.environment;
  start.program.settings = options.settings.worker_environment;
  start.program.given = options.given_environment;
  start.meeting.master_address = master.address.empty() ? kLoopbackAddress : master.address;
  start.meeting.master_port = master.port;
  start.share.omp_threads = options.settings.omp_threads;
  start.share.bind_to = options.settings.bind_to;
  start.share.gpus = options.settings.gpus;
  start.trace = TraceModeOf(options.settings);
  start.program.stdin_to = options.settings.stdin_to;
  start.program.stdin_terminal = options.stdin_terminal ? 1 : 0;
  start.policy.ranks_change = options.policy.ranks_change ? 1 : 0;
  start.policy.stops_at_commit = options.policy.stops_at_commit ? 1 : 0;
  start.policy.measures_training = options.policy.measures_training ? 1 : 0;
  start.limits.script_warning_ms = ScriptWarningMs(options.settings);
  start.limits.commit_bytes = options.policy.commit_bytes;
  start.limits.terminate_grace_ms =
      static_cast<int64_t>(options.settings.terminate_grace_seconds * 1e3);
  start.limits.driver_grace_ms = DriverGraceMs(options);
  return start;
}

StartJob StartJobOn(uint32_t host, std::vector<Placement> slots, const Plan& plan,
                    const DriverOptions& options, const JobHosts& hosts, StartJob common) {
  StartJob start = std::move(common);
  start.host = plan.hosts[host];
  start.ranks.slots = std::move(slots);
  start.meeting.listen_addresses = {kLoopbackAddress};
  if (hosts.SeveralMachines(plan)) start.meeting.listen_addresses = hosts[host].addresses;
  if (options.settings.hosts_per_machine > 1) {
    start.share.part = host;
    start.share.parts = static_cast<uint32_t>(plan.hosts.size());
  }
  if (hosts[host].remote) {
    start.limits.silence_ms =
        static_cast<int64_t>(options.settings.heartbeat_timeout_seconds * 1e3);
  }
  return start;
}

// The message with which the first rank is started. The hosts of an elastic job are not known yet.
StartJob StartJobFor(const DriverOptions& options, uint32_t host) {
  const Plan& plan = options.plan;
  StartJob common = CommonStart(options, plan, options.master);
  if (plan.hosts.empty()) {
    StartJob start = std::move(common);
    start.ranks.size = options.policy.np;
    start.ranks.slots = {{0, 0, 0, start.ranks.size, 0, 1}};
    return start;
  }
  return StartJobOn(host, plan.OnHost(host), plan, options, JobHosts(options), std::move(common));
}

std::string PathOfWorkers(const DriverOptions& options) {
  std::string path = kDefaultPath;
  for (const auto* entries :
       {&options.environment, &options.settings.worker_environment, &options.given_environment}) {
    for (const std::string& entry : *entries) {
      if (entry.starts_with("PATH=")) path = entry.substr(5);
    }
  }
  return path;
}

Status CheckExecSize(const DriverOptions& options, const InstallPaths& paths) {
  StartJob start = StartJobFor(options, 0);
  // The other slots' differ by a few digits.
  std::vector<std::string> environment =
      WorkerEnvironment(start, 0, {MakeLinkAddress(options.job_id), options.job_id}, paths, {});
  std::optional<std::string> why = WhyTooLong(start.program.argv, environment, LimitsHere());
  return why ? InvalidArgument(*why) : Status::Ok();
}

Status CheckDescriptorLimit() {
  constexpr rlim_t kFewest = 24;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= kFewest) return Status::Ok();
  return InvalidArgument(
      Format("Too many open files: it may have {} descriptors (ulimit -n) and needs {} at least, "
             "and some for each rank and host",
             limit.rlim_max, kFewest));
}

}  // namespace hvd
