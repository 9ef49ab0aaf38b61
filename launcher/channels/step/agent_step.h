// AgentStep: one step of a scheduler that starts the agents of many hosts (README). Hosts opened
// together share it; their channels end independently, and the step with the last of them.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_CHANNELS_STEP_AGENT_STEP_H_
#define HVD_LAUNCHER_CHANNELS_STEP_AGENT_STEP_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/channels/command_channel.h"
#include "launcher/channels/host_channel.h"
#include "launcher/channels/step/step_lines.h"
#include "launcher/overlay/dial/connector_loop.h"
#include "launcher/process/local_family.h"
#include "runtime/base/clock.h"

namespace hvd {

struct StepHost {
  uint32_t number = 0;  // of the plan
  std::string name;     // in the scheduler
};

// How the scheduler starts a step, and how to interpret its output. Pure functions.
struct StepProgram {
  std::function<std::vector<std::string>(const std::vector<StepHost>&)> command;
  // The end of one host or its task, from the output so far; nothing while they live.
  std::function<std::optional<ChannelEnd>(const std::string& printed, const std::string& host)>
      read_output;
  std::function<ChannelEnd(const CommandEnd&, const std::string& host)> read_end;
};

struct AgentStepOptions {
  std::string job_id;
  StepProgram program;
  std::function<Result<MeshListener>()> listen;
  // From an agent's line on the step's stdout to its connection.
  Duration patience = std::chrono::seconds(6);
  // Channels begin with the step's output that precedes the agents' bytes.
  bool greets = true;
};

class AgentStep final : public std::enable_shared_from_this<AgentStep>,
                        private ChannelObserver,
                        private MeshConnectorOwner {
 public:
  // `clock` outlives this object, and so does `io`.
  AgentStep(asio::io_context& io, const Clock& clock, AgentStepOptions options,
            std::shared_ptr<LocalFamily> family);
  ~AgentStep() override;

  // The step starts right after the first channel is opened, with the hosts whose channels are open
  // by then. A later host, or one whose agent does not connect, ends with ChannelEnd::may_pass:
  // another route may work.
  std::unique_ptr<HostChannel> Join(StepHost host);

 private:
  class Member;

  // ChannelObserver, for the step's own program.
  void OnStage(ChannelStage) override {}
  void OnBytes(std::string_view bytes) override;
  void OnWritable() override { SendInvitation(); }
  void OnEnd(const ChannelEnd& end) override;
  void OnCommandOutput(const std::string& printed);

  void Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) override;
  void Unreachable(uint32_t, Status) override {}  // never dials

  void OnMemberOpen(Member& member);
  void OnMemberOver(bool by_force);
  void OnMemberGone(const Member& member);
  void Start();
  void SendInvitation();
  void FallBack(Member& member, const std::string& why);
  bool AnyOpen() const;
  Member* Find(uint32_t host) const;

  asio::io_context& io_;
  const Clock& clock_;
  const AgentStepOptions options_;
  const std::shared_ptr<LocalFamily> family_;
  std::map<uint32_t, Member*> members_;  // open channels, by host; owned by the callers of Join
  bool asked_ = false, started_ = false, warned_ = false;
  std::string unsent_;  // of the invitation
  StepLines lines_;
  std::unique_ptr<ConnectorLoop> door_;
  std::unique_ptr<CommandChannel> command_;
  CommandEnd end_;     // of the program, as far as known
  bool over_ = false;  // the program has ended or failed to start
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_STEP_AGENT_STEP_H_
