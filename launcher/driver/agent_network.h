// AgentNetwork: how hvdrun exchanges messages with the agents of its job: a stream to each of them
// (AgentSet), the tree of agents over many hosts (TreeRouter), the relay for ranks whose hosts do
// not reach each other (RelaySwitch), the directory in which ranks publish their addresses
// (KvService), and questions for the time of each host (ClockSchedule).
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_AGENT_NETWORK_H_
#define HVD_LAUNCHER_DRIVER_AGENT_NETWORK_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "discovery/host_slots.h"
#include "launcher/channels/factory/channel_factory.h"
#include "launcher/driver/agents/agent_set.h"
#include "launcher/driver/connectivity_round.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/driver/services/kv_service.h"
#include "launcher/job/host_records/host_clock.h"
#include "launcher/job/state/job_state.h"
#include "launcher/overlay/relay/relay_switch.h"
#include "launcher/overlay/tree/tree_router.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

template <typename Message>
concept IsOfRelay = requires(RelaySwitch relay, const Message& message) {
  relay.Handle(0U, message);
};

class AgentNetwork {
 public:
  // All of them outlive this object. `observer` hears of every connection.
  AgentNetwork(asio::io_context& io, ChannelFactory& channels, AgentConnectionObserver& observer,
               const DriverOptions& options, const JobState& state, JobHosts& hosts);
  AgentNetwork(const AgentNetwork&) = delete;

  // Adds a host of an elastic job to `hosts`, and its connection, which is not open yet. The state
  // knows the host already.
  void AddHost(const HostSlots& listing);
  // Adds the connection of the next host that has none.
  void AddConnection();

  AgentSet& agents() { return agents_; }
  const AgentSet& agents() const { return agents_; }
  const TreeRouter& tree() const { return tree_; }
  KvService& directory() { return directory_; }
  ConnectivityRound& connectivity() { return connectivity_; }
  ClockSchedule& clocks() { return clocks_; }

  // Forms the tree over the hosts of the plan; later calls change nothing.
  void FormTree();
  // The plan has become final, or its ranks were placed.
  void UsePlan() { tree_.UseRanks(state_.plan); }
  // Has the hosts with a rank probe each other.
  void ProbeAddresses();
  // Carries these routes between ranks, and measures them.
  void OpenRelay(const RelayRoutes& relay);
  // Has the agent of the host wait for another hvdrun if this one is killed.
  void AwaitSuccessorAt(uint32_t host);
  // The members of a generation have changed, and so have the hosts with a rank.
  void UseMembers() { tree_.Reform(state_.GenerationPlan()); }
  // Sends to all agents, through the tree if there is one.
  void Broadcast(const ToAgent& message);
  // Sends what has been queued for the tree.
  void Flush() { tree_.Flush(); }

  // Handles a message about a relayed connection. Not ok, here and below: a sentence about "its
  // agent", for AgentConnection::Break.
  template <IsOfRelay Message>
  Status Handle(uint32_t host, const Message& message, TimePoint) {
    if (!tree_.Has(host)) return Status::Ok();
    return relay_.Handle(tree_.NumberOf(host), message);
  }
  Status Handle(uint32_t host, const WantKey& want, TimePoint) {
    return directory_.Want(host, want);
  }
  // The messages in a batch from the tree, with the hosts that sent them.
  Result<std::vector<std::pair<uint32_t, ToDriver>>> OpenBatch(uint32_t host,
                                                               const TreeUp& batch) const {
    return tree_.Open(host, batch);
  }
  // An agent lost its parent in the tree. False: this was known.
  bool HandleCut(uint32_t host, const TreeCut& cut, TimePoint now);
  // The host's agent is gone.
  void HandleGone(uint32_t host);

  // Asks the agent for its time when that is due, so that departures of ranks on different hosts
  // can be ordered.
  void AskTimeIfDue(uint32_t host, TimePoint now);
  // Call at NextTick() or later.
  void Tick(TimePoint now);
  // The last step of a tick: gives up agents that have had no parent in the tree for too long.
  void BreakOverdue(TimePoint now);
  TimePoint NextTick() const;

 private:
  asio::io_context& io_;
  ChannelFactory& channels_;
  AgentConnectionObserver& observer_;
  const DriverOptions& options_;
  const JobState& state_;
  JobHosts& hosts_;
  size_t known_to_channels_;  // number of hosts whose channels can be made
  AgentSet agents_;
  TreeRouter tree_;
  RelaySwitch relay_;  // knows hosts by their numbers in the tree
  KvService directory_;
  ConnectivityRound connectivity_;
  ClockSchedule clocks_{0};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_AGENT_NETWORK_H_
