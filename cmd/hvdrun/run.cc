// The default verb: parse, plan, wire, run.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <sstream>
#include <system_error>
#include <thread>

#include "cmd/hvdrun/verbs.h"
#include "configs/command_line.h"
#include "configs/message_text.h"
#include "launcher/agent/binding.h"
#include "launcher/agent/held_port.h"
#include "launcher/driver/driver.h"
#include "launcher/driver/error_file.h"
#include "launcher/driver/final_plan.h"
#include "launcher/driver/start_job.h"
#include "launcher/environment/env_file.h"
#include "launcher/environment/worker_env.h"
#include "launcher/jobs/dead_jobs.h"
#include "launcher/jobs/job_id.h"
#include "launcher/output/output.h"
#include "launcher/output/output_files.h"
#include "launcher/output/stdin_reader.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/net/address_range.h"

namespace hvd {
namespace {

constexpr size_t kMaxSentence = 500;  // of a usage error, whatever it quotes

// --env-file first, so that -x wins.
Result<std::vector<std::string>> GivenEnvironment(const Settings& settings) {
  std::vector<std::string> entries;
  if (!settings.env_file.empty()) {
    Result<std::vector<GivenVariable>> in_file = ReadEnvFile(settings.env_file);
    if (!in_file.ok()) return in_file.status();
    for (const GivenVariable& variable : *in_file) entries.push_back(variable.entry());
  }
  Result<std::vector<GivenVariable>> passed =
      ParsePassed(settings.pass_env, [](const char* name) { return GetEnv(name); });
  if (!passed.ok()) return passed.status();
  for (const GivenVariable& variable : *passed) entries.push_back(variable.entry());
  return entries;
}

int PrintEnvironment(const DriverOptions& options) {
  StartJob start = StartJobFor(options, 0);
  std::vector<Cpu> cpus = PartOfCpus(AllowedCpus(), start.machine_part, start.machine_parts);
  auto local_size = static_cast<uint32_t>(start.slots.size());
  std::vector<uint32_t> shares = CoreShares(BindRanks(start.bind_to, cpus, local_size));
  WorkerCores cores{static_cast<uint32_t>(cpus.size()), shares[0]};
  ExplainedEnvironment environment =
      ExplainWorkerEnvironment(start, 0, {"...", options.job_id}, PathsBeside(OwnPath()), cores);
  return PrintText(PrintEnvText(environment));
}

// Beside the start of the job, which waits for nobody else's processes. Without a thread, hvdrun ps
// does the same.
class DeadJobsSweep {
 public:
  DeadJobsSweep() {
    try {
      thread_ = std::thread([] {
        for (const std::string& sentence : EndDeadJobs()) LogWarning(sentence);
      });
    } catch (const std::system_error&) {
    }
  }
  ~DeadJobsSweep() {
    if (thread_.joinable()) thread_.join();
  }
  DeadJobsSweep(const DeadJobsSweep&) = delete;

 private:
  std::thread thread_;
};

}  // namespace

std::string WorkingDirectory() {
  char path[PATH_MAX];
  return ::getcwd(path, sizeof path) != nullptr ? path : "/";
}

std::vector<std::string> Environment() {
  std::vector<std::string> entries;
  for (const auto& [name, value] : AllEnv()) entries.push_back(name + "=" + value);
  return entries;
}

int UsageError(const Status& status) {
  WriteAll(STDERR_FILENO, "hvdrun: " + Printable(status.message(), kMaxSentence) + "\n");
  return kUsageError;
}

Result<NetworkSettings> ReadNetwork(const Settings& settings) {
  NetworkSettings network;
  Result<PortRange> ports = ParsePortRange(settings.port_range);
  if (!ports.ok()) return ports.status();
  network.first_port = ports->first;
  network.last_port = ports->last;
  Result<StageLimits> limits = StageLimits::Parse(settings.stage_timeouts);
  if (!limits.ok()) return limits.status();
  network.stage_limits = *limits;
  if (settings.stage_timeouts.find("hello=") == std::string::npos) {
    network.stage_limits.at(HostStage::kHello) = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(settings.start_timeout_seconds));
  }
  std::istringstream names(settings.network_interfaces);
  for (std::string name; std::getline(names, name, ',');) {
    if (Result<AddressRange> range = ParseAddressRange(name); LooksLikeRange(name) && !range.ok())
      return InvalidArgument("--network-interfaces: " + range.status().message());
    network.interfaces.push_back(name);
  }
  return network;
}

int PrintText(const std::string& text) {
  if (WriteAll(STDOUT_FILENO, text)) return 0;
  WriteAll(STDERR_FILENO,
           std::string("hvdrun: stdout cannot be written: ") + std::strerror(errno) + "\n");
  return 1;
}

int RunVerb(const std::vector<std::string>& args) {
  Result<ParsedCommandLine> parsed =
      ParseCommandLine(args, [](const char* name) { return GetEnv(name); });
  if (!parsed.ok()) return UsageError(parsed.status());
  if (parsed->action == Action::kCheckBuild) parsed->text = CheckBuildText();
  if (parsed->action != Action::kRun) return PrintText(parsed->text);
  SetLog(ParseLogLevel(parsed->settings.log_level, LogLevel::kWarning), "hvdrun");
  for (const std::string& warning : parsed->warnings) LogWarning(warning);

  if (Status status = CheckNoHostInCommand(parsed->settings, parsed->command); !status.ok())
    return UsageError(status);
  Result<PrefixTemplate> prefix = PrefixTemplate::Parse(parsed->settings.prefix);
  if (!prefix.ok()) return UsageError(prefix.status());
  if (Status status = CheckIdentityFile(parsed->settings); !status.ok()) return UsageError(status);
  Result<std::vector<HostSlots>> hosts = HostsOf(parsed->settings);
  if (!hosts.ok()) return UsageError(hosts.status());
  Result<PlanDraft> draft = DraftPlan(*hosts, static_cast<uint32_t>(parsed->settings.num_proc));
  if (!draft.ok()) return UsageError(draft.status());

  if (const std::string& path = parsed->settings.error_file; !path.empty()) {
    if (Status status = PrepareErrorFile(path); !status.ok()) return UsageError(status);
  }

  if (Status enough = CheckDescriptorLimit(); !enough.ok()) {
    WriteAll(STDERR_FILENO, "hvdrun: " + enough.message() + "\n");
    return 1;
  }

  std::string job_id = MakeJobId();
  DriverOptions options{job_id,          MakeJobKey(),  std::move(draft->plan), parsed->settings,
                        parsed->command, Environment(), WorkingDirectory()};
  Result<std::vector<std::string>> given = GivenEnvironment(options.settings);
  if (!given.ok()) return UsageError(given.status());
  options.given_environment = std::move(*given);
  options.prefix = std::move(*prefix);
  Result<NetworkSettings> network = ReadNetwork(options.settings);
  if (!network.ok()) return UsageError(network.status());
  options.stage_limits = network->stage_limits;
  options.interfaces = network->interfaces;
  options.first_port = network->first_port;
  options.last_port = network->last_port;
  options.named_hosts = std::move(draft->hosts);
  for (const HostSlots& host : options.named_hosts) options.hosts.push_back({host.remote, {}});
  HeldPort master(/*everywhere=*/false);
  options.master_port = master.port();
  master.LetServersListen();  // the job starts at once
  if (IsEmptyInput(STDIN_FILENO)) options.settings.stdin_to = "none";
  options.stdin_terminal = ::isatty(STDIN_FILENO) == 1;
  if (options.settings.print_env) return PrintEnvironment(options);
  if (Status status = CheckExecSize(options, PathsBeside(OwnPath())); !status.ok())
    return UsageError(status);
  if (const std::string& directory = options.settings.output_filename; !directory.empty()) {
    Status status =
        PrepareOutputFiles(directory, options.plan.size(), options.settings.output_limit_bytes);
    if (!status.ok()) return UsageError(status);
  }
  ChannelFactory routes = WaysTo(options.named_hosts, options.settings, job_id);
  const DeadJobsSweep sweep;
  return RunJob(std::move(options), routes);
}

}  // namespace hvd
