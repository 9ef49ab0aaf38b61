// How each host of a run is reached: an agent on this machine, behind ssh, or behind --rsh-agent.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <memory>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "launcher/bundle/bundle_source.h"
#include "launcher/bundle/remote_script.h"
#include "launcher/bundle/side_command.h"
#include "launcher/channels/command_channel.h"
#include "launcher/channels/local_channel.h"
#include "launcher/channels/retrying_channel.h"
#include "launcher/channels/ssh/any_ssh_channel.h"
#include "launcher/channels/ssh_command.h"
#include "launcher/jobs/job_id.h"
#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr const char* kSelf = "/proc/self/exe";
constexpr uint32_t kConnectSeconds = 10;  // of the ssh program; the stages have limits of their own

SshHost SshHostOf(const HostSlots& host, const Settings& settings) {
  return {.name = host.host,
          .user = host.user,
          .port = host.port != 0 ? host.port : static_cast<uint16_t>(settings.ssh_port),
          .identity_file = settings.ssh_identity_file};
}

// What hosts over there are asked for. Without a build id (hvdrun lies somewhere by itself) any
// build of the version will do, and none can be sent.
RemoteAgent RemoteAgentOf(const Settings& settings) {
  RemoteAgent agent{.executable = OwnPath(), .version = HVD_VERSION};
  utsname names{};
  if (::uname(&names) == 0) agent.machine = names.machine;
  Result<std::string> build = InstalledBuildId(agent.executable);
  if (build.ok()) agent.build_id = *build;
  if (!build.ok() && settings.bundle != "never")
    LogWarning("hvdrun cannot be sent to other hosts: " + build.status().message());
  if (!build.ok() || settings.bundle == "never") {
    agent.bundle = BundleUse::kNever;
  } else if (settings.bundle == "always") {
    agent.bundle = BundleUse::kAlways;
  }
  return agent;
}

Result<uint16_t> ParsePort(std::string_view text, std::string_view range) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size() && port > 0) return port;
  return InvalidArgument("--port-range " + Quoted(range) +
                         " is no range of ports; try --port-range 40000-40999");
}

}  // namespace

std::string OwnPath() {
  char path[PATH_MAX] = {};
  return ::readlink(kSelf, path, sizeof path - 1) > 0 ? path : "/usr/bin/hvdrun";
}

Result<PortRange> ParsePortRange(std::string_view text) {
  if (text.empty()) return PortRange{};
  size_t dash = std::min(text.find('-'), text.size());
  Result<uint16_t> first = ParsePort(text.substr(0, dash), text);
  if (!first.ok()) return first.status();
  Result<uint16_t> last = dash == text.size() ? first : ParsePort(text.substr(dash + 1), text);
  if (!last.ok()) return last.status();
  if (*last < *first) return ParsePort("", text).status();
  return PortRange{*first, *last};
}

ChannelFactory WaysTo(const std::vector<HostSlots>& hosts, const Settings& settings,
                      const std::string& job_id) {
  auto family = std::make_shared<LocalFamily>();
  // Made with the first way by SSH; owned by the ways, which end before the io_context.
  auto known_hub = std::make_shared<std::weak_ptr<SshHub>>();
  auto known_bundles = std::make_shared<std::weak_ptr<BundleSource>>();
  const bool any_remote =
      std::any_of(hosts.begin(), hosts.end(), [](const HostSlots& host) { return host.remote; });
  const RemoteAgent wanted = any_remote ? RemoteAgentOf(settings) : RemoteAgent();
  return [=](asio::io_context& io, uint32_t number) -> HostTransport {
    const HostSlots& host = hosts[number];
    std::string id = AgentJobId(job_id, number);
    if (!host.remote) {
      std::vector<std::string> agent = {kSelf, "agent", "--job", id};
      return {std::make_unique<LocalChannel>(io, id, agent, family), "", nullptr, nullptr, ""};
    }
    std::shared_ptr<BundleSource> bundles = known_bundles->lock();
    if (bundles == nullptr)
      *known_bundles = bundles = std::make_shared<BundleSource>(io, wanted.executable, family);
    RemoteAgent agent = wanted;
    agent.job_id = id;
    std::shared_ptr<SshHub> hub = known_hub->lock();
    if (hub == nullptr && settings.rsh_agent.empty() && settings.ssh_client != "program")
      *known_hub = hub = std::make_shared<SshHub>(io, family);
    auto run_there = [=, &io](const std::string& command) -> std::unique_ptr<HostChannel> {
      if (!settings.rsh_agent.empty()) {
        return std::make_unique<CommandChannel>(
            io, RshAgentCommand(settings.rsh_agent, host.host, command),
            [agent = settings.rsh_agent](const CommandEnd& end) {
              return ReadRshAgentEnd(agent, end);
            },
            family);
      }
      const SshHost target = SshHostOf(host, settings);
      const bool accept_new = settings.ssh_host_keys == "accept-new";
      auto by_program = [=, &io](const SshHost&, const std::string&) {
        return std::make_unique<CommandChannel>(
            io, SshCommand(target, accept_new, command, kConnectSeconds),
            [target](const CommandEnd& end) { return ReadSshEnd(target, end); }, family);
      };
      if (settings.ssh_client == "program") return by_program({}, "");
      return std::make_unique<AnySshChannel>(
          hub, target, command,
          accept_new ? UnknownHostKeys::kAccept : UnknownHostKeys::kAsConfigured, by_program);
    };
    auto reach = [=] { return run_there(RemoteAgentCommand(agent)); };
    HostTransport transport{std::make_unique<RetryingChannel>(io, reach), AgentGreeting(id),
                            bundles, nullptr, ""};
    transport.side_command = [=](SideCommand side_command, const AgentPath& there) {
      return run_there(SideCommandLine(side_command, there, id));
    };
    transport.no_agent_words = NoAgentWords(id);
    return transport;
  };
}

}  // namespace hvd
