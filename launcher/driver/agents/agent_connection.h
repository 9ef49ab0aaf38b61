// AgentConnection: the driver's connection to the agent of one host: the channel, whose first bytes
// may be a login shell's output, the stream, and the heartbeat. Turns the channel's bytes into
// messages for an observer. With a grace, a channel that is lost while the job runs is
// re-established and the stream continues over it (reconnect_policy.h, side_command.h); the
// observer is told that the host is away and that it is back.
//
// Owns the channels; the observer outlives it. One thread, the channel's: the observer is called on
// it, perhaps from inside Open, and may call back from there.
#ifndef HVD_LAUNCHER_DRIVER_AGENTS_AGENT_CONNECTION_H_
#define HVD_LAUNCHER_DRIVER_AGENTS_AGENT_CONNECTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/channels/bundle/bundle_source.h"
#include "launcher/channels/bundle/side_command.h"
#include "launcher/channels/factory/channel_factory.h"
#include "launcher/channels/host_channel.h"
#include "launcher/channels/preamble.h"
#include "launcher/driver/agents/reconnect_policy.h"
#include "launcher/job/host_records/host_stages.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/net/stream.h"

namespace hvd {

// An agent sends something at least once per heartbeat; one that has its part of a job and is
// silent for the limit is lost.
struct Heartbeat {
  Duration every = std::chrono::seconds(2);
  int limit_seconds = 0;
  Duration grace{};  // how long to retry a lost connection; 0: not at all
};

// Observes the connections to many hosts; `host` is the number of the one concerned.
class AgentConnectionObserver {
 public:
  virtual ~AgentConnectionObserver() = default;
  virtual void OnHostStage(uint32_t host, HostStage stage) = 0;
  virtual void OnHostTrouble(uint32_t host, const HostTrouble& trouble) = 0;
  // How the host is reached, for --verbose.
  virtual void OnHostNote(uint32_t host, const std::string& text) = 0;
  // A worker's output, which used `message_bytes` of the stream's credit. The view is valid during
  // the call only.
  virtual void OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) = 0;
  // Any other message.
  virtual void OnMessage(uint32_t host, ToDriver message) = 0;
  // After the messages that arrived together.
  virtual void OnReadOver(uint32_t host) = 0;
  // The connection to its agent is lost and is being re-established; messages sent meanwhile arrive
  // later. `reason` as below.
  virtual void OnHostAway(uint32_t host, const std::string& reason) = 0;
  virtual void OnHostBack(uint32_t host, Duration away) = 0;
  // An installed hvdrun was not run there, because other users could have changed it; `what` is the
  // sentence (ParseScriptSkips).
  virtual void OnHvdrunSkipped(uint32_t host, const std::string& what) = 0;
  // Last call. `reason` is one sentence without the host's name; empty when the agent had reported
  // that it is done.
  virtual void OnHostEnd(uint32_t host, const std::string& reason) = 0;
};

class AgentConnection final {
 public:
  // `job` distinguishes this agent's stream from others.
  AgentConnection(AgentConnectionObserver& observer, uint32_t host, uint64_t job,
                  HostTransport transport, Heartbeat heartbeat);
  ~AgentConnection();

  void Open();
  // Begins a stream with the agent of a driver that was killed, which waits at `there` for `key`.
  // `first` is the first message. OnHostBack is not called. Retried for `grace`.
  void OpenAsSuccessor(const AgentPath& there, std::string key, const TakeOver& first,
                       Duration grace);
  // Empty until the agent has reported it.
  const AgentPath& there() const { return there_; }
  // The agent is to wait for another driver when this one is gone.
  void NoteSuccessor() { awaited_ = true; }
  // Does nothing once the host has ended.
  void Send(const ToAgent& message);
  // `count` bytes of OnOutput's messages were processed: the agent may send as many more.
  void ReturnCredit(size_t count);
  // Call at NextTick() or later; it is earlier after OnHostAway.
  void Tick();
  TimePoint NextTick() const;
  // Ends the agent by force.
  void Cut();
  // Gives the host up, with a reason of our own.
  void Break(const std::string& reason);

  bool away() const { return reconnect_.has_value(); }
  // The agent has sent something within the last two heartbeats.
  bool heard() const { return !ended_ && !away() && silent_looks_ <= 2; }
  // After the end: the host's part of the job may still run, because no message reached it, or it
  // was killed and left something.
  bool left_alone() const { return left_alone_ && !gone_; }
  // A channel for a side command after the end; null: none can be made.
  std::unique_ptr<HostChannel> MakeSideCommand(SideCommand side_command) const;

 private:
  struct Connection;

  void Connect(std::unique_ptr<HostChannel> channel, std::string first_bytes);
  void Disconnect();
  void Flush();
  void OnBytes(Connection& connection, std::string_view bytes);
  void OnEnd(Connection& connection, const ChannelEnd& end);
  void Receive(std::string_view bytes);
  void ReceiveScript(std::string_view words);
  void FeedBundle(const Result<SharedBundle>& bundle);
  Status HandleMessage(std::string_view message);
  void LookForSilence();
  bool MayResume() const;
  void Lose(const std::string& reason);
  void TryAgain(TimePoint now);
  void End(const std::string& reason);
  void EndWhenDisconnected();
  std::string ReasonOf(const Connection& connection, const ChannelEnd& end) const;

  AgentConnectionObserver& observer_;
  uint32_t host_;
  Stream stream_;
  std::shared_ptr<BundleFeed> feed_;  // while the host receives hvdrun
  int asked_ = 0;                     // number of requests for it
  int skipped_ = 0;                   // installed copies of hvdrun that the host skipped
  HostTransport transport_;
  Heartbeat heartbeat_;
  std::string resume_key_;                  // empty: a lost connection is not made anew
  std::string successor_key_;               // until the agent has let this driver in
  AgentPath there_;                         // once the agent has reported it
  std::unique_ptr<Connection> connection_;  // the current one
  // Those that still end, or have ended since the last tick.
  std::vector<std::unique_ptr<Connection>> old_;
  std::optional<ReconnectPolicy> reconnect_;
  std::minstd_rand chance_{std::random_device{}()};
  bool awaited_ = false;   // the agent waits for this driver when the connection is lost
  bool started_ = false;   // the agent has its part of the job
  bool gone_ = false;      // the agent reported that it is done
  bool given_up_ = false;  // this side wants no more
  bool left_alone_ = false;
  bool ended_ = false;
  std::optional<std::string> end_reason_;  // to be reported when no channel is left
  int silent_looks_ = 0;
  TimePoint next_look_ = SteadyNow();
  std::string broken_;  // why this side gave the stream up
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_AGENTS_AGENT_CONNECTION_H_
