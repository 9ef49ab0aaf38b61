#include "launcher/channels/factory/settings_channel_factory.h"

#include <sys/utsname.h>

#include <algorithm>
#include <utility>

#include "launcher/bundle/bundle.h"
#include "launcher/channels/command_channel.h"
#include "launcher/channels/local_channel.h"
#include "launcher/channels/retrying_channel.h"
#include "launcher/channels/ssh/any_ssh_channel.h"
#include "launcher/jobs/job_id.h"
#include "runtime/base/log.h"

namespace hvd {
namespace {

// The agent on this machine is this very program, whatever lies at its path by now.
constexpr const char* kSelf = "/proc/self/exe";
constexpr uint32_t kConnectSeconds = 10;  // of the ssh program; the stages have limits of their own

std::string MachineHere() {
  utsname names{};
  return ::uname(&names) == 0 ? names.machine : "";
}

}  // namespace

RemoteClient RemoteClientOf(const Settings& settings) {
  if (!settings.rsh_agent.empty()) return RemoteClient::kRshAgent;
  return settings.ssh_client == "program" ? RemoteClient::kSshProgram : RemoteClient::kSshLibrary;
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
  if (!build.ok() || settings.bundle == "never") {
    agent.bundle = BundleUse::kNever;
  } else if (settings.bundle == "always") {
    agent.bundle = BundleUse::kAlways;
  }
  return agent;
}

SettingsChannelFactory::SettingsChannelFactory(std::vector<HostSlots> hosts,
                                               const Settings& settings, std::string job_id,
                                               const std::string& executable)
    : hosts_(std::move(hosts)),
      executable_(executable),
      settings_(settings),
      job_id_(std::move(job_id)),
      client_(RemoteClientOf(settings)),
      accept_new_keys_(settings.ssh_host_keys == "accept-new") {
  if (std::ranges::any_of(hosts_, [](const HostSlots& host) { return host.remote; }))
    PrepareRemote();
}

void SettingsChannelFactory::PrepareRemote() {
  if (std::exchange(prepared_, true)) return;
  const Result<std::string> build = InstalledBuildId(executable_);
  if (!build.ok() && settings_.bundle != "never")
    LogWarning("hvdrun cannot be sent to other hosts: " + build.status().message());
  remote_agent_ = RemoteAgentOf(settings_, executable_, MachineHere(), build);
}

void SettingsChannelFactory::Add(const HostSlots& host) {
  hosts_.push_back(host);
  if (host.remote) PrepareRemote();
}

HostTransport SettingsChannelFactory::Make(asio::io_context& io, uint32_t host) {
  const std::string agent_id = AgentJobId(job_id_, host);
  return hosts_[host].remote ? MakeRemote(io, host, agent_id) : MakeLocal(io, agent_id);
}

HostTransport SettingsChannelFactory::MakeLocal(asio::io_context& io, const std::string& agent_id) {
  std::vector<std::string> agent = {kSelf, "agent", "--job", agent_id};
  return {std::make_unique<LocalChannel>(io, agent_id, agent, family_), "", nullptr, nullptr, ""};
}

HostTransport SettingsChannelFactory::MakeRemote(asio::io_context& io, uint32_t host,
                                                 const std::string& agent_id) {
  RemoteAgent agent = remote_agent_;
  agent.job_id = agent_id;
  const auto hub = client_ == RemoteClient::kSshLibrary ? Hub(io) : nullptr;
  auto run_there = [this, &io, hub, host](const std::string& command) {
    return RunThere(io, hub, host, command);
  };
  auto reach = [run_there, agent] { return run_there(RemoteAgentCommand(agent)); };
  HostTransport transport;
  transport.channel = std::make_unique<RetryingChannel>(io, reach);
  transport.greeting = AgentGreeting(agent_id);
  transport.bundles = Bundles(io);
  transport.side_command = [run_there, agent_id](SideCommand command, const AgentPath& there) {
    return run_there(SideCommandLine(command, there, agent_id));
  };
  transport.no_agent_words = NoAgentWords(agent_id);
  return transport;
}

std::unique_ptr<HostChannel> SettingsChannelFactory::RunThere(asio::io_context& io,
                                                              const std::shared_ptr<SshHub>& hub,
                                                              uint32_t host,
                                                              const std::string& command) {
  if (client_ == RemoteClient::kRshAgent) return RunByRshAgent(io, host, command);
  if (client_ == RemoteClient::kSshProgram) return RunBySshProgram(io, host, command);
  auto by_program = [this, &io, host, command](const SshHost&, const std::string&) {
    return RunBySshProgram(io, host, command);
  };
  return std::make_unique<AnySshChannel>(
      hub, SshHostOf(hosts_[host], settings_), command,
      accept_new_keys_ ? UnknownHostKeys::kAccept : UnknownHostKeys::kAsConfigured, by_program);
}

std::unique_ptr<HostChannel> SettingsChannelFactory::RunByRshAgent(asio::io_context& io,
                                                                   uint32_t host,
                                                                   const std::string& command) {
  const std::string& agent = settings_.rsh_agent;
  return std::make_unique<CommandChannel>(
      io, RshAgentCommand(agent, hosts_[host].host, command),
      [agent](const CommandEnd& end) { return ReadRshAgentEnd(agent, end); }, family_);
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

std::shared_ptr<BundleSource> SettingsChannelFactory::Bundles(asio::io_context& io) {
  std::shared_ptr<BundleSource> bundles = bundles_.lock();
  if (bundles == nullptr)
    bundles_ = bundles = std::make_shared<BundleSource>(io, remote_agent_.executable, family_);
  return bundles;
}

}  // namespace hvd
