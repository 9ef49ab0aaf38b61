#include "launcher/channels/factory/settings_channel_factory.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "discovery/allocations/slurm_allocation.h"
#include "launcher/channels/bundle/bundle.h"
#include "launcher/channels/command_channel.h"
#include "launcher/channels/command_end.h"
#include "launcher/channels/local_channel.h"
#include "launcher/channels/retrying_channel.h"
#include "launcher/channels/srun_command.h"
#include "launcher/channels/ssh/any_ssh_channel.h"
#include "launcher/output/stdin_reader.h"
#include "launcher/process/jobs/job_id.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"

namespace hvd {
namespace {

// The agent on this machine is this very program, even if its file has been replaced.
constexpr const char* kSelf = "/proc/self/exe";
constexpr uint32_t kConnectSeconds = 10;  // of the ssh program; the stages have limits of their own

std::string MachineHere() {
  utsname names{};
  return ::uname(&names) == 0 ? names.machine : "";
}

// The names of these hosts are one argument of a command, which has at most 128 KiB.
constexpr uint32_t kMostHostsOfStep = 1000;

SrunNode NodeOf(const std::string& name) {
  return {name, SlurmComponentOf([](const char* key) { return GetEnv(key); }, name)};
}

std::vector<std::optional<uint32_t>> StepsOf(const std::vector<HostSlots>& hosts) {
  std::vector<std::optional<SrunNode>> nodes(hosts.size());
  for (size_t host = 0; host < hosts.size(); ++host) {
    if (hosts[host].remote) nodes[host] = NodeOf(hosts[host].host);
  }
  return ShareSteps(nodes, kMostHostsOfStep);
}

std::vector<std::string> NotForSrun() {
  std::vector<std::string> names;
  for (const auto& [name, value] : AllEnv()) {
    if (!SrunInherits(name)) names.push_back(name);
  }
  return names;
}

}  // namespace

RemoteClient RemoteClientOf(const Settings& settings) {
  if (!RshAgentOf(settings).empty()) return RemoteClient::kRshAgent;
  if (settings.launcher == RemoteLauncher::kSrun) return RemoteClient::kSrun;
  return settings.ssh_client == SshClient::kProgram ? RemoteClient::kSshProgram
                                                    : RemoteClient::kSshLibrary;
}

std::string RshAgentOf(const Settings& settings) {
  const bool by_blaunch =
      settings.rsh_agent.empty() && settings.launcher == RemoteLauncher::kBlaunch;
  return by_blaunch ? NameOf(settings.launcher) : settings.rsh_agent;
}

SshHost SshHostOf(const HostSlots& host, const Settings& settings) {
  return {.name = host.host,
          .user = host.user,
          .port = host.port != 0 ? host.port : static_cast<uint16_t>(settings.ssh_port),
          .identity_file = settings.ssh_identity_file};
}

RemoteAgent RemoteAgentOf(const Settings& settings, const std::string& executable,
                          const std::string& machine, const Result<std::string>& build) {
  RemoteAgent agent{.executable = executable, .version = HVD_VERSION};
  agent.machine = machine;
  if (build.ok()) agent.build_id = *build;
  agent.bundle = build.ok() ? settings.bundle : BundleUse::kNever;
  return agent;
}

SettingsChannelFactory::SettingsChannelFactory(const std::vector<HostSlots>& hosts,
                                               const Settings& settings, std::string job_id,
                                               const std::string& executable, DialHints dial)
    : executable_(executable),
      settings_(settings),
      job_id_(std::move(job_id)),
      client_(dial.nodes ? RemoteClient::kNodes : RemoteClientOf(settings)),
      accept_new_keys_(settings.ssh_host_keys == HostKeys::kAcceptNew),
      dial_(std::move(dial)) {
  Add(hosts);
}

void SettingsChannelFactory::PrepareRemote() {
  if (std::exchange(prepared_, true)) return;
  const Result<std::string> build = InstalledBuildId(executable_);
  if (!build.ok() && settings_.bundle != BundleUse::kNever)
    LogWarning("hvdrun cannot be sent to other hosts: " + build.status().message());
  remote_agent_ = RemoteAgentOf(settings_, executable_, MachineHere(), build);
}

void SettingsChannelFactory::Add(const std::vector<HostSlots>& hosts) {
  hosts_.insert(hosts_.end(), hosts.begin(), hosts.end());
  if (std::ranges::any_of(hosts, [](const HostSlots& host) { return host.remote; }))
    PrepareRemote();
  if (client_ != RemoteClient::kSrun) return;
  for (std::optional<uint32_t> step : StepsOf(hosts)) {
    if (step) *step += first_step_;
    step_of_.push_back(step);
  }
  // Hosts added later do not join a step that has begun.
  for (const std::optional<uint32_t>& step : step_of_) {
    if (step) first_step_ = std::max(first_step_, *step + 1);
  }
}

HostTransport SettingsChannelFactory::Make(asio::io_context& io, uint32_t host) {
  const std::string agent_id = AgentJobId(job_id_, host);
  return hosts_[host].remote ? MakeRemote(io, host, agent_id) : MakeLocal(io, host, agent_id);
}

HostTransport SettingsChannelFactory::MakeLocal(asio::io_context& io, uint32_t host,
                                                const std::string& agent_id) {
  if (host < found_local_agents_) {
    HostTransport transport;
    transport.greeting = AgentGreeting(agent_id);
    transport.no_agent_text = NoAgentText(agent_id);
    transport.side_command = [this, &io, agent_id](SideCommand command, const AgentPath& there) {
      return std::make_unique<CommandChannel>(
          io, std::vector<std::string>{"/bin/sh", "-c", SideCommandLine(command, there, agent_id)},
          [](const CommandEnd& end) { return EndOfAgentIn(ChannelStage::kRunning, end); }, family_);
    };
    return transport;
  }
  std::vector<std::string> agent = {"hvdrun", "agent", "--job", agent_id};
  return {std::make_unique<LocalChannel>(io, agent_id, agent, family_, kSelf,
                                         PassesStdin(settings_.stdin_to) ? STDIN_FILENO : -1),
          "", nullptr, nullptr, ""};
}

HostTransport SettingsChannelFactory::MakeRemote(asio::io_context& io, uint32_t host,
                                                 const std::string& agent_id) {
  RemoteAgent agent = remote_agent_;
  agent.job_id = agent_id;
  const auto hub = client_ == RemoteClient::kSshLibrary ? Hub(io) : nullptr;
  const auto door = client_ == RemoteClient::kNodes ? Door(io) : nullptr;
  auto run_there = [this, &io, hub, door, host](const std::string& command,
                                                NodeDoor::Purpose purpose) {
    return RunThere(io, hub, door, host, command, purpose);
  };
  auto by_step = StepOf(io, host);
  auto reach = [run_there, agent, by_step, to = StepHost{host, hosts_[host].host}]() mutable {
    if (auto step = std::exchange(by_step, nullptr)) return step->Join(to);
    return run_there(RemoteAgentCommand(agent), NodeDoor::Purpose::kBegin);
  };
  HostTransport transport;
  transport.channel = std::make_unique<RetryingChannel>(io, reach, servers_come_late_);
  transport.greeting = AgentGreeting(agent_id);
  transport.bundles = Bundles(io);
  transport.side_command = [run_there, agent_id](SideCommand command, const AgentPath& there) {
    return run_there(SideCommandLine(command, there, agent_id), NodeDoor::Purpose::kAskAgent);
  };
  transport.no_agent_text = NoAgentText(agent_id);
  return transport;
}

std::unique_ptr<HostChannel> SettingsChannelFactory::RunThere(
    asio::io_context& io, const std::shared_ptr<SshHub>& hub, const std::shared_ptr<NodeDoor>& door,
    uint32_t host, const std::string& command, NodeDoor::Purpose purpose) {
  if (door) return door->Reach(hosts_[host].host, command, purpose);
  if (client_ == RemoteClient::kRshAgent) return RunByRshAgent(io, host, command);
  if (client_ == RemoteClient::kSrun) return RunBySrun(io, host, command);
  if (client_ == RemoteClient::kSshProgram) return RunBySshProgram(io, host, command);
  auto by_program = [this, &io, host, command](const SshHost&, const std::string&) {
    return RunBySshProgram(io, host, command);
  };
  SshHost target = SshHostOf(hosts_[host], settings_);
  // The next attempt asks for the name again: a pod may get another address.
  if (servers_come_late_) target.connect_seconds = kConnectSeconds;
  return std::make_unique<AnySshChannel>(
      hub, target, command,
      accept_new_keys_ ? UnknownHostKeys::kAccept : UnknownHostKeys::kAsConfigured, by_program);
}

std::unique_ptr<HostChannel> SettingsChannelFactory::RunByRshAgent(asio::io_context& io,
                                                                   uint32_t host,
                                                                   const std::string& command) {
  const std::string agent = RshAgentOf(settings_);
  return std::make_unique<CommandChannel>(
      io, RshAgentCommand(agent, hosts_[host].host, command),
      [agent](const CommandEnd& end) { return ReadRshAgentEnd(agent, end); }, family_);
}

std::unique_ptr<HostChannel> SettingsChannelFactory::RunBySrun(asio::io_context& io, uint32_t host,
                                                               const std::string& command) {
  const SrunNode node = NodeOf(hosts_[host].host);
  return std::make_unique<CommandChannel>(io, SrunCommand(node, NotForSrun(), command), ReadSrunEnd,
                                          family_);
}

std::shared_ptr<AgentStep> SettingsChannelFactory::StepOf(asio::io_context& io, uint32_t host) {
  if (host >= step_of_.size() || !step_of_[host]) return nullptr;
  std::weak_ptr<AgentStep>& shared = steps_[*step_of_[host]];
  std::shared_ptr<AgentStep> step = shared.lock();
  if (step == nullptr) {
    const std::optional<uint32_t> component = NodeOf(hosts_[host].host).component;
    shared = step = std::make_shared<AgentStep>(io, clock_, StepOptions(component), family_);
  }
  return step;
}

AgentStepOptions SettingsChannelFactory::StepOptions(std::optional<uint32_t> component) const {
  AgentStepOptions options;
  options.job_id = job_id_;
  options.listen = [this] { return Listen(); };
  options.program.command = [this, component](const std::vector<StepHost>& hosts) {
    RemoteAgent agents = remote_agent_;
    std::vector<SrunNode> nodes;
    for (const StepHost& host : hosts) {
      nodes.push_back({host.name, component});
      agents.step.push_back({host.name, AgentJobId(job_id_, host.number)});
    }
    return SrunStepCommand(nodes, NotForSrun(), RemoteAgentCommand(agents));
  };
  options.program.read_output = ParseSrunOutput;
  options.program.read_end = ReadSrunStepEnd;
  return options;
}

// The interfaces in the settings are those of the hosts; this machine may have others.
Result<MeshListener> SettingsChannelFactory::Listen() const {
  ListenHints hints{{}, dial_.first_port, dial_.last_port};
  if (Result<std::vector<std::string>> here = AddressesOfInterfaces(dial_.interfaces); here.ok())
    hints.addresses = std::move(*here);
  return OpenMeshListener(hints, 0);
}

std::unique_ptr<HostChannel> SettingsChannelFactory::RunBySshProgram(asio::io_context& io,
                                                                     uint32_t host,
                                                                     const std::string& command) {
  const SshHost target = SshHostOf(hosts_[host], settings_);
  return std::make_unique<CommandChannel>(
      io, SshCommand(target, accept_new_keys_, command, kConnectSeconds),
      [target](const CommandEnd& end) { return ReadSshEnd(target, end); }, family_);
}

std::shared_ptr<SshHub> SettingsChannelFactory::Hub(asio::io_context& io) {
  std::shared_ptr<SshHub> hub = hub_.lock();
  if (hub == nullptr) hub_ = hub = std::make_shared<SshHub>(io, family_);
  return hub;
}

std::shared_ptr<NodeDoor> SettingsChannelFactory::Door(asio::io_context& io) {
  std::shared_ptr<NodeDoor> door = door_.lock();
  if (door == nullptr) {
    door_ = door = std::make_shared<NodeDoor>(io, clock_, dial_.nodes);
    if (Status listens = door->Listen(); !listens.ok()) LogWarning(listens.message());
  }
  return door;
}

std::shared_ptr<BundleSource> SettingsChannelFactory::Bundles(asio::io_context& io) {
  std::shared_ptr<BundleSource> bundles = bundles_.lock();
  if (bundles == nullptr)
    bundles_ = bundles = std::make_shared<BundleSource>(io, remote_agent_.executable, family_);
  return bundles;
}

}  // namespace hvd
