// The default verb: reads the command line, plans, and runs the job.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "cmd/hvdrun/verbs.h"
#include "configs/command_line.h"
#include "configs/message_text.h"
#include "configs/python_command.h"
#include "configs/verb_list.h"
#include "discovery/host_selection.h"
#include "discovery/this_machine.h"
#include "launcher/agent/environment/env_file.h"
#include "launcher/agent/environment/worker_env.h"
#include "launcher/agent/gpu/gpu_assignment.h"
#include "launcher/agent/workers/binding.h"
#include "launcher/agent/workers/cpu_assignment.h"
#include "launcher/agent/workers/held_port.h"
#include "launcher/agent/workers/worker_gpus.h"
#include "launcher/channels/bundle/install_paths.h"
#include "launcher/channels/factory/settings_channel_factory.h"
#include "launcher/detached/standby.h"
#include "launcher/detached/steered_watch.h"
#include "launcher/driver/driver.h"
#include "launcher/driver/function_channel.h"
#include "launcher/driver/network_settings.h"
#include "launcher/driver/start_job.h"
#include "launcher/job/error_file.h"
#include "launcher/job/host_records/final_plan.h"
#include "launcher/job/policy/job_policy.h"
#include "launcher/live/metrics_server.h"
#include "launcher/output/output.h"
#include "launcher/output/output_files.h"
#include "launcher/output/stdin_reader.h"
#include "launcher/process/jobs/dead_jobs.h"
#include "launcher/process/jobs/job_id.h"
#include "runtime/base/cpu_quota.h"
#include "runtime/base/env.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/trace/trace_file.h"

namespace hvd {
namespace {

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
  if (options.settings.stock_horovod) start.meeting.rendezvous = "...:...";  // known when it starts
  std::vector<Cpu> cpus = PartOfMachine(AllowedCpus(), start.share.part, start.share.parts);
  auto local_size = static_cast<uint32_t>(start.ranks.slots.size());
  const std::vector<GpuDevice> devices = GpusFor(start);
  const std::vector<std::string> gpus = SharedGpus(start, devices);
  const uint32_t usable = UsableCpus(static_cast<uint32_t>(cpus.size()), OwnCpuQuota());
  const CpuAssignment kept(start.share.bind_to, cpus, local_size, NodesOfGpus(gpus, devices),
                           usable);
  WorkerShare share = kept.ShareOf(0);
  share.gpu = AssignGpus(start, gpus, devices).Acquire(0, 0, kept.NodesOf(0));
  ExplainedEnvironment environment =
      ExplainWorkerEnvironment(start, 0, {"...", options.job_id}, PathsBeside(OwnPath()), share);
  return PrintText(PrintEnvText(environment));
}

// Ends processes that dead jobs of this user have left, in a thread beside the start of the job,
// which does not wait for it. If no thread can be started, hvdrun ps will do it.
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

// Without -np, all slots of the hosts that were named.
Result<int> NumProcOn(const std::vector<HostSlots>& hosts, const Settings& settings) {
  if (settings.num_proc > 0) return settings.num_proc;
  Result<int> all = SlotsOfAll(hosts);
  if (all.ok()) PrintNotes({Format("-np {}: all slots of the hosts", *all)});
  return all;
}

// The hosts, and the plan of ranks on them.
Status ReadHosts(const ParsedCommandLine& parsed, DriverOptions& options) {
  const Settings& settings = parsed.settings;
  HVD_RETURN_IF_ERROR(CheckNoHostInCommand(settings, parsed.command));
  Result<PrefixTemplate> prefix = PrefixTemplate::Parse(settings.prefix);
  if (!prefix.ok()) return prefix.status();
  options.prefix = std::move(*prefix);
  HVD_RETURN_IF_ERROR(CheckIdentityFile(settings));
  Result<JobPolicy> policy = PolicyOf(settings);
  if (!policy.ok()) return policy.status();
  options.policy = *policy;
  if (policy->finds_hosts) return Status::Ok();
  Result<std::vector<HostSlots>> hosts = HostsOf(settings);
  if (!hosts.ok()) return hosts.status();
  const Result<int> num_proc = NumProcOn(*hosts, settings);
  if (!num_proc.ok()) return num_proc.status();
  Result<PlanDraft> draft = DraftPlan(*hosts, static_cast<uint32_t>(*num_proc));
  if (!draft.ok()) return draft.status();
  options.plan = std::move(draft->plan);
  options.policy = FixedPolicy(options.plan.size());  // now that it is known
  options.named_hosts = std::move(draft->hosts);
  for (const HostSlots& host : options.named_hosts) options.hosts.push_back({host.remote, {}});
  return Status::Ok();
}

// Whether the file is executable by this user and begins with #!.
bool RunsByItself(const std::string& path) {
  if (::access(path.c_str(), X_OK) != 0) return false;
  std::ifstream file(path, std::ios::binary);
  return file.get() == '#' && file.get() == '!';
}

// The command of the job; for a script or module of Python with the interpreter in front.
PythonCommand CommandOf(const ParsedCommandLine& parsed, const std::string& directory) {
  const auto here = [directory](const std::string& path) {
    return (std::filesystem::path(directory) / path).string();
  };
  return WithPython(parsed.command, parsed.settings.module,
                    {IsOnPath,
                     [here](const std::string& path) {
                       std::error_code ignored;
                       return std::filesystem::is_regular_file(here(path), ignored);
                     },
                     [here](const std::string& path) { return RunsByItself(here(path)); }});
}

// --dry-run: for an elastic job, with the current hosts.
int PrintPlan(const DriverOptions& options) {
  if (!options.policy.finds_hosts)
    return PrintText(PlanText(options.plan, options.named_hosts, options));
  Result<std::vector<HostSlots>> hosts = HostsOf(options.settings);
  if (!hosts.ok()) return UsageError(hosts.status());
  const Result<PlanDraft> draft = DraftPlan(*hosts, options.policy.np);
  if (!draft.ok()) return UsageError(draft.status());
  return PrintText(PlanText(draft->plan, draft->hosts, options));
}

// A detached job keeps its output files and its error file where its verbs look for them.
void KeepFiles(const DetachedJob& detached, DriverOptions& options) {
  constexpr int64_t kLeastBytes = 64 << 10;
  Settings& settings = options.settings;
  settings.error_file = detached.error_file;
  if (!settings.output_filename.empty()) return;
  settings.output_filename = detached.ranks_folder;
  // Two streams per rank, each with a current and an older file.
  const int64_t files = int64_t{4} * std::max<int64_t>(options.policy.most_workers(), 1);
  settings.output_limit_bytes = std::max(kLeastBytes, settings.detached_output_limit_bytes / files);
}

// Explains that the driver of a detached job does not move to its first host.
std::string StaysHereText(const std::string& first_host) {
  return Format(
      "hvdrun runs on this machine, and the job ends with it; to leave it on {0}, which needs keys "
      "of its own for the other hosts: ssh {0} hvdrun --detach ...",
      first_host);
}

// Fills in the command, folder and variables with which the ranks are started.
Status ReadJob(const ParsedCommandLine& parsed, const DetachedJob* detached,
               DriverOptions& options) {
  options.job_id = detached != nullptr ? detached->id : MakeJobId();
  options.job_key = MakeJobKey();
  options.settings = parsed.settings;
  if (detached != nullptr) KeepFiles(*detached, options);
  // Stock Horovod writes the file if its variable is set.
  if (options.settings.stock_horovod) options.settings.timeline_filename.clear();
  options.environment = Environment();
  const std::filesystem::path here = WorkingDirectory();
  options.directory = here;
  if (const std::string& folder = parsed.settings.chdir; !folder.empty())
    options.directory = (here / folder).lexically_normal();
  PythonCommand python = CommandOf(parsed, options.directory);
  options.command = std::move(python.command);
  if (!python.note.empty()) PrintNotes({python.note});
  Result<std::vector<std::string>> given = GivenEnvironment(options.settings);
  if (!given.ok()) return given.status();
  options.given_environment = std::move(*given);
  Result<NetworkSettings> network = ReadNetwork(options.settings, HostsComeLate(options.settings));
  if (!network.ok()) return network.status();
  options.stage_limits = network->stage_limits;
  options.interfaces = std::move(network->interfaces);
  options.first_port = network->ports.first;
  options.last_port = network->ports.last;
  // It would be undefined which of the changing ranks has read what.
  if (IsEmptyInput(STDIN_FILENO) || options.policy.ranks_change)
    options.settings.stdin_to = StdinTo::kNone;
  options.stdin_terminal = ::isatty(STDIN_FILENO) == 1;
  return Status::Ok();
}

// The checks that need all of the options, and the files of the job.
Status Prepare(const DriverOptions& options) {
  const InstallPaths paths = PathsBeside(OwnPath());
  if (std::string overlaid = OverlaidPackage(paths); !overlaid.empty())
    PrintNotes({"warning: " + overlaid});
  HVD_RETURN_IF_ERROR(CheckExecSize(options, paths));
  const Settings& settings = options.settings;
  if (HasTimelineFile(settings)) {
    if (Status may = TraceFile::Check(settings.timeline_filename); !may.ok()) return may;
  }
  if (!settings.dump_on_failure.empty()) {
    if (Status may = TraceFile::Check(settings.dump_on_failure); !may.ok()) return may;
  }
  if (settings.metrics_port >= 0) {
    const auto port = static_cast<uint16_t>(settings.metrics_port);
    if (Status may = MetricsServer::Check(settings.metrics_bind, port); !may.ok()) return may;
  }
  if (settings.output_filename.empty()) return Status::Ok();
  return PrepareOutputFiles(settings.output_filename, options.policy.most_workers(),
                            settings.output_limit_bytes);
}

// A detached job survives the death of its hvdrun, unless something else of it ends then: the
// launcher of its ranks or agents, the rendezvous of stock Horovod, the timeline; or the user wants
// no grace period.
bool MayBeTakenOver(const DriverOptions& options) {
  const Settings& settings = options.settings;
  const RemoteClient client = RemoteClientOf(settings);
  // Hosts may be added at any time.
  const bool remote = options.policy.finds_hosts || options.any_remote();
  const bool may_reach = !remote || client == RemoteClient::kSshLibrary ||
                         client == RemoteClient::kSshProgram || client == RemoteClient::kRshAgent;
  return may_reach && !settings.stock_horovod && RankLauncherOf(settings).empty() &&
         !HasTimelineFile(settings) && settings.driver_grace_seconds != 0;
}

// From here on there is a standby process, and this process may itself have taken over.
Status BeginSuccession(const DetachedJob& detached, DriverOptions& options) {
  // If ranks change, each worker has a new number; unused memory costs nothing.
  constexpr uint32_t kMostNumbers = 1 << 20;
  auto printed = PrintedOutput::Make(options.policy.most_workers(), detached.mark,
                                     options.policy.ranks_change ? kMostNumbers : 0);
  if (!printed.ok()) return printed.status();
  Result<Succession> succession = BeginSuccession(detached);
  if (!succession.ok()) return succession.status();
  options.printed = std::move(*printed);
  options.successor_key = MakeJobKey();
  options.successor_link = succession->link.Release();
  if (!succession->record) return Status::Ok();
  options.taken_over = DecodeTakeoverRecord(*succession->record);
  if (!options.taken_over) return Internal("hvdrun left a record that cannot be read");
  options.successor_key = options.taken_over->key;  // that the agents know
  return Status::Ok();
}

// For the hvdrun of a detached job, and each one that takes it over.
void BeginSuccessionIfPossible(const DetachedJob* detached, DriverOptions& options,
                               SettingsChannelFactory& channels) {
  constexpr double kGraceOfDetached = 60;
  double& grace = options.settings.driver_grace_seconds;
  const bool given = grace >= 0;
  if (detached != nullptr && MayBeTakenOver(options)) {
    options.successor_grace_seconds = given ? grace : kGraceOfDetached;
    // A job that survives the loss of a host continues sooner without the host than with it.
    if (!options.policy.outlives_losses) grace = options.successor_grace_seconds;
    if (Status status = BeginSuccession(*detached, options); !status.ok())
      LogWarning("the job ends with this hvdrun if it is killed: " + status.message());
    if (options.taken_over)
      channels.FindLocalAgents(static_cast<uint32_t>(options.taken_over->hosts.size()));
  } else if (detached != nullptr && given && grace == 0) {
    PrintNotes(
        {"--driver-grace 0: no other hvdrun takes over, so the job ends if its hvdrun is "
         "killed"});
  }
  grace = std::max(grace, 0.0);
}

// Runs a job whose hosts may change while it runs.
int RunElastic(DriverOptions options, const DetachedJob* detached, const NodePart& nodes) {
  SettingsChannelFactory channels(
      {}, options.settings, options.job_id, OwnPath(),
      {options.interfaces, options.first_port, options.last_port, nodes.waiting});
  if (HostsComeLate(options.settings)) channels.WaitForServers();
  Result<HostWatchMaker> watch = HostWatchOf(options.settings, channels.family());
  if (!watch.ok()) return UsageError(watch.status());
  if (detached != nullptr) {
    *watch = [hosts = *watch, file = detached->PathOf("hosts")](asio::io_context& io) {
      return std::make_unique<SteeredWatch>(io, hosts(io), file);
    };
  }
  BeginSuccessionIfPossible(detached, options, channels);
  const DeadJobsSweep sweep;
  return RunJob(std::move(options), channels, *watch);
}

int Run(const ParsedCommandLine& parsed, const DetachedJob* detached, const NodePart& nodes) {
  DriverOptions options;
  if (Status status = ReadHosts(parsed, options); !status.ok()) return UsageError(status);
  if (const std::string& path = parsed.settings.error_file;
      !path.empty() && !parsed.settings.dry_run) {
    if (Status status = PrepareErrorFile(path); !status.ok()) return UsageError(status);
  }
  if (Status enough = CheckDescriptorLimit(); !enough.ok()) {
    WriteAll(STDERR_FILENO, "hvdrun: " + enough.message() + "\n");
    return 1;
  }
  if (Status status = ReadJob(parsed, detached, options); !status.ok()) return UsageError(status);
  PrintNotes(parsed.notes);
  if (detached != nullptr && !options.hosts.empty() && options.hosts.front().remote)
    PrintNotes({StaysHereText(options.plan.hosts.front())});
  if (options.settings.dry_run) return PrintPlan(options);
  HeldPort master(/*everywhere=*/false);
  options.master.port = master.port();
  master.LetServersListen();  // the job starts at once
  if (options.settings.print_env) return PrintEnvironment(options);
  if (const int channel = options.settings.function_channel; channel >= 0) {
    Result<std::string> function = ReadFunction(channel);
    // The user who interrupted the caller knows why nothing runs.
    if (function.status().code() == Code::kAborted) return kSignalBase + SIGINT;
    if (!function.ok()) return UsageError(function.status());
    options.function = std::move(*function);
  }
  if (Status status = Prepare(options); !status.ok()) return UsageError(status);
  if (options.policy.finds_hosts) return RunElastic(std::move(options), detached, nodes);
  ChooseLauncher(options.named_hosts, options.settings);
  SettingsChannelFactory channels(
      options.named_hosts, options.settings, options.job_id, OwnPath(),
      {options.interfaces, options.first_port, options.last_port, nodes.waiting});
  if (HostsComeLate(options.settings)) channels.WaitForServers();
  const Result<LauncherMaker> launcher = RankLauncherFor(options, channels.family());
  if (!launcher.ok()) return UsageError(launcher.status());
  BeginSuccessionIfPossible(detached, options, channels);
  const DeadJobsSweep sweep;
  return RunJob(std::move(options), channels, nullptr, *launcher);
}

}  // namespace

namespace {

uint32_t CountSlots(std::string_view kind) {
  if (kind == "auto") return DefaultSlots();
  return kind == "gpu" ? GpuSlots() : CoreSlots();
}

// "hvdrun dcotor": a misspelt verb rather than a program.
Status CheckVerb(const std::vector<std::string>& args) {
  if (args.empty() || args[0].starts_with('-') || args[0].find('/') != std::string::npos)
    return Status::Ok();
  const std::string_view verb = NearestVerb(args[0]);
  if (verb.empty() || IsOnPath(args[0])) return Status::Ok();
  return InvalidArgument(Quoted(args[0]) +
                         " is neither a verb nor a program: did you mean hvdrun " +
                         std::string(verb) + "?");
}

}  // namespace

int RunVerb(const std::vector<std::string>& args) {
  if (Status status = CheckVerb(args); !status.ok()) return UsageError(status);
  Result<ParsedCommandLine> parsed = ParseCommandLine(
      args, [](const char* name) { return GetEnv(name); }, ReadConfigFile, Verb::kRun,
      ReadAllocationHere(), CountSlots, ReadStandingSettings(AllEnv()));
  if (!parsed.ok()) return UsageError(parsed.status());
  const bool json = parsed->settings.json;
  if (parsed->action == Action::kCheckBuild)
    parsed->text = json ? CheckBuildJson() : CheckBuildText();
  if (parsed->action == Action::kPrintConfig && json) parsed->text = ConfigJson(parsed->origins);
  if (parsed->action == Action::kVersion) parsed->text = VersionText();
  if (parsed->action != Action::kRun) return PrintText(parsed->text);
  LogLevel level = parsed->settings.log_level;
  if (parsed->settings.quiet) {
    level = std::max(level, LogLevel::kError);
    SetQuiet();
  }
  SetLog({level, "hvdrun"});
  for (const std::string& warning : parsed->warnings) LogWarning(warning);
  if (Status status = CheckOneTaskHere(parsed->settings); !status.ok()) return UsageError(status);
  UseProjectsPython();
  const Settings& settings = parsed->settings;
  const Result<NodePart> nodes = JoinNodes(settings);
  if (!nodes.ok()) return UsageError(nodes.status());
  if (nodes->code) return *nodes->code;
  if (!settings.detach || settings.dry_run || settings.print_env)
    return EndWithNodes(*nodes, Run(*parsed, nullptr, *nodes));
  return RunDetached(*parsed, [&](const DetachedJob& job) { return Run(*parsed, &job, *nodes); });
}

}  // namespace hvd
