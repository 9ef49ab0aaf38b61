// hvdrun doctor: connects to all hosts as a run does, but starts no job; examines each host and
// each pair of them.
#include "launcher/doctor/doctor.h"

#include <unistd.h>

#include "cmd/hvdrun/verbs.h"
#include "configs/command_line.h"
#include "discovery/host_selection.h"
#include "launcher/channels/bundle/install_paths.h"
#include "launcher/channels/factory/settings_channel_factory.h"
#include "launcher/doctor/report/host_facts.h"
#include "launcher/driver/network_settings.h"
#include "launcher/process/jobs/dead_jobs.h"
#include "launcher/process/jobs/job_id.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"

namespace hvd {

int DoctorVerb(const std::vector<std::string>& args) {
  Result<ParsedCommandLine> parsed = ParseCommandLine(
      args, [](const char* name) { return GetEnv(name); }, ReadConfigFile, Verb::kDoctor,
      ReadAllocationHere(), {}, ReadStandingSettings(AllEnv()));
  if (!parsed.ok()) return UsageError(parsed.status());
  if (parsed->action == Action::kCheckBuild) parsed->text = CheckBuildText();
  if (parsed->action == Action::kVersion) parsed->text = VersionText();
  if (parsed->action != Action::kRun) return PrintText(parsed->text);
  Settings& settings = parsed->settings;
  SetLog({settings.log_level, "hvdrun doctor"});
  for (const std::string& warning : parsed->warnings) LogWarning(warning);
  if (Status status = CheckNoHostInCommand(settings, parsed->command); !status.ok())
    return UsageError(status);
  if (Status status = CheckIdentityFile(settings); !status.ok()) return UsageError(status);
  PrintNotes(parsed->notes);
  UseProjectsPython();
  const Result<NodePart> nodes = JoinNodes(settings);
  if (!nodes.ok()) return UsageError(nodes.status());
  if (nodes->code) return *nodes->code;
  if (std::string overlaid = OverlaidPackage(PathsBeside(OwnPath())); !overlaid.empty())
    LogWarning(overlaid);
  if (settings.num_proc < 1) settings.num_proc = settings.hosts_per_machine;
  Result<std::vector<HostSlots>> hosts = HostsOf(settings);
  if (!hosts.ok()) return UsageError(hosts.status());
  if (hosts->empty())
    return UsageError(
        InvalidArgument("the discovery script names no host now; there is nothing to examine"));
  Result<NetworkSettings> network = ReadNetwork(settings, HostsComeLate(settings));
  if (!network.ok()) return UsageError(network.status());

  DoctorOptions options;
  options.job_id = MakeJobId();
  options.heartbeat_timeout_seconds = static_cast<int>(settings.heartbeat_timeout_seconds);
  options.json = settings.json;
  ExaminationOptions& examination = options.examination;
  for (const HostSlots& host : *hosts) examination.hosts.push_back({host.host, host.remote});
  examination.stage_limits = network->stage_limits;
  examination.version = HVD_VERSION;
  examination.job_key = MakeJobKey();
  examination.interfaces = network->interfaces;
  examination.first_port = network->ports.first;
  examination.last_port = network->ports.last;
  examination.directory = WorkingDirectory();
  examination.interpreter = InterpreterOf(parsed->command);
  examination.environment = Environment();
  examination.silence_limit_ms = static_cast<int64_t>(settings.heartbeat_timeout_seconds * 1e3);
  examination.wall_minus_steady_ns = WallNanoseconds() - SteadyNow().time_since_epoch().count();
  ChooseLauncher(*hosts, settings);
  SettingsChannelFactory channels(
      *hosts, settings, options.job_id, OwnPath(),
      {network->interfaces, network->ports.first, network->ports.last, nodes->waiting});
  int code = EndWithNodes(*nodes, RunDoctor(std::move(options), channels));
  for (const std::string& sentence : EndDeadJobs()) LogWarning(sentence);
  return code;
}

}  // namespace hvd
