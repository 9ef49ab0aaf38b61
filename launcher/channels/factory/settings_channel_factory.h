// SettingsChannelFactory: creates the channels to the hosts of a job from its settings: an agent on
// this machine, or over ssh (libssh2 or the program), srun, or --rsh-agent.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_CHANNELS_FACTORY_SETTINGS_CHANNEL_FACTORY_H_
#define HVD_LAUNCHER_CHANNELS_FACTORY_SETTINGS_CHANNEL_FACTORY_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "discovery/host_slots.h"
#include "launcher/channels/bundle/remote_script.h"
#include "launcher/channels/factory/channel_factory.h"
#include "launcher/channels/nodes/node_door.h"
#include "launcher/channels/srun_command.h"
#include "launcher/channels/ssh/ssh_hub.h"
#include "launcher/channels/ssh_command.h"
#include "launcher/channels/step/agent_step.h"
#include "launcher/process/local_family.h"
#include "runtime/base/clock.h"

namespace hvd {

// Which program or library reaches a remote host.
enum class RemoteClient { kRshAgent, kSrun, kNodes, kSshProgram, kSshLibrary };
// Pure.
RemoteClient RemoteClientOf(const Settings& settings);
// The program of kRshAgent, which may be blaunch. Pure.
std::string RshAgentOf(const Settings& settings);
// The ssh options of this host: the host list overrides the settings. Pure.
SshHost SshHostOf(const HostSlots& host, const Settings& settings);
// The agent that remote hosts run. `build`: the build id of this hvdrun, or why it has none;
// without one any build of the same version is accepted there, and none can be sent. Pure.
RemoteAgent RemoteAgentOf(const Settings& settings, const std::string& executable,
                          const std::string& machine, const Result<std::string>& build);

// Where this process may listen for agents that connect to it.
struct DialHints {
  std::vector<std::string> interfaces;     // empty, or none of these present: all
  uint16_t first_port = 0, last_port = 0;  // both 0: any
  // Other nodes that dial this one; null: none.
  std::shared_ptr<WaitingNodes> nodes = nullptr;
};

class SettingsChannelFactory final : public ChannelFactory {
 public:
  // `hosts`: by number; if a scheduler starts the agents, hosts opened together share steps.
  // `executable`: this hvdrun. Logs a warning if sending hvdrun to other hosts is enabled but not
  // possible.
  SettingsChannelFactory(const std::vector<HostSlots>& hosts, const Settings& settings,
                         std::string job_id, const std::string& executable, DialHints dial = {});

  HostTransport Make(asio::io_context& io, uint32_t host) override;
  void Add(const std::vector<HostSlots>& hosts) override;

  // For an hvdrun that takes over a job: on hosts below number `end` that are this machine, the
  // agent is already running.
  void FindLocalAgents(uint32_t end) { found_local_agents_ = end; }

  // From now on a remote host at which no SSH server answers is retried: it may start later.
  void WaitForServers() { servers_come_late_ = true; }

  // The child processes of this process, to share with other parts that fork.
  const std::shared_ptr<LocalFamily>& family() const { return family_; }

 private:
  using Channel = std::unique_ptr<HostChannel>;

  void PrepareRemote();
  HostTransport MakeLocal(asio::io_context& io, uint32_t host, const std::string& agent_id);
  HostTransport MakeRemote(asio::io_context& io, uint32_t host, const std::string& agent_id);
  // Runs a command on a host. `hub` is null unless the client is the library, and `door` unless
  // nodes dial.
  Channel RunThere(asio::io_context& io, const std::shared_ptr<SshHub>& hub,
                   const std::shared_ptr<NodeDoor>& door, uint32_t host, const std::string& command,
                   NodeDoor::Purpose purpose);
  Channel RunByRshAgent(asio::io_context& io, uint32_t host, const std::string& command);
  Channel RunBySrun(asio::io_context& io, uint32_t host, const std::string& command);
  Channel RunBySshProgram(asio::io_context& io, uint32_t host, const std::string& command);
  // The step that starts the agent of this host together with others; null: none.
  std::shared_ptr<AgentStep> StepOf(asio::io_context& io, uint32_t host);
  AgentStepOptions StepOptions(std::optional<uint32_t> component) const;
  Result<MeshListener> Listen() const;
  std::shared_ptr<SshHub> Hub(asio::io_context& io);
  std::shared_ptr<NodeDoor> Door(asio::io_context& io);
  std::shared_ptr<BundleSource> Bundles(asio::io_context& io);

  std::vector<HostSlots> hosts_;
  const std::string executable_;
  const Settings settings_;
  const std::string job_id_;
  const RemoteClient client_;
  const bool accept_new_keys_;
  RemoteAgent remote_agent_;  // set with the first remote host
  bool prepared_ = false;
  uint32_t found_local_agents_ = 0;
  bool servers_come_late_ = false;
  const DialHints dial_;
  const SteadyClock clock_;
  const std::shared_ptr<LocalFamily> family_ = std::make_shared<LocalFamily>();
  // Created for the first transport that needs them; owned by the transports, which end before the
  // io_context.
  std::weak_ptr<SshHub> hub_;
  std::weak_ptr<NodeDoor> door_;
  std::weak_ptr<BundleSource> bundles_;
  std::vector<std::optional<uint32_t>> step_of_;        // by host
  std::map<uint32_t, std::weak_ptr<AgentStep>> steps_;  // by number
  uint32_t first_step_ = 0;                             // of the hosts added next
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_FACTORY_SETTINGS_CHANNEL_FACTORY_H_
