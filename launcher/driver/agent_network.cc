#include "launcher/driver/agent_network.h"

#include <algorithm>
#include <map>
#include <memory>

#include "launcher/driver/job_settings.h"
#include "launcher/process/jobs/job_id.h"

namespace hvd {
namespace {

// The hosts that an elastic job has found, from this one on; they are opened one after the other.
std::vector<HostSlots> HostsFrom(uint32_t host, const ElasticState& elastic) {
  std::vector<HostSlots> found;
  for (size_t at = host; at < elastic.hosts.size(); ++at)
    found.push_back(elastic.hosts[at].listing);
  return found;
}

}  // namespace

AgentNetwork::AgentNetwork(asio::io_context& io, ChannelFactory& channels,
                           AgentConnectionObserver& observer, const DriverOptions& options,
                           const JobState& state, JobHosts& hosts)
    : io_(io),
      channels_(channels),
      observer_(observer),
      options_(options),
      state_(state),
      hosts_(hosts),
      known_to_channels_(state.plan.hosts.size()),
      tree_([this](uint32_t host, const ToAgent& message) { agents_.Send(host, message); }),
      relay_([this](uint32_t number, const ToAgent& message) {
        agents_.Send(tree_.hosts()[number], message);
      }),
      directory_(tree_),
      connectivity_(options, state.plan, hosts, tree_) {}

void AgentNetwork::AddHost(const HostSlots& listing) {
  hosts_.Add(listing);
  AddConnection();
}

void AgentNetwork::AddConnection() {
  const uint32_t host = agents_.count();
  if (host >= known_to_channels_) {
    const std::vector<HostSlots> together = HostsFrom(host, state_.elastic);
    channels_.Add(together);
    known_to_channels_ = host + together.size();
  }
  clocks_.AddHost();
  const uint64_t id = ParseJobId(options_.job_id).value_or(0);
  agents_.Add(
      std::make_unique<AgentConnection>(observer_, host, id + host, channels_.Make(io_, host),
                                        HeartbeatOf(options_.settings, hosts_[host].remote)));
}

// Agents on one machine need no tree: the driver reaches them all at no cost. Those on several
// machines can connect to each other only where addresses are probed.
void AgentNetwork::FormTree() {
  tree_.Form(state_.plan, hosts_.SeveralMachines(state_.plan)
                              ? static_cast<uint32_t>(options_.settings.tree_radix)
                              : UINT32_MAX);
}

void AgentNetwork::ProbeAddresses() {
  FormTree();
  for (uint32_t host : tree_.hosts()) agents_.Send(host, connectivity_.QuestionFor(host));
}

void AgentNetwork::OpenRelay(const RelayRoutes& relay) {
  // By host: the numbers of the hosts that it does not reach.
  std::map<uint32_t, std::vector<uint32_t>> blocked;
  for (const auto& [from, to] : relay.routes) {
    relay_.Allow(tree_.NumberOf(from), tree_.NumberOf(to));
    blocked[from].push_back(tree_.NumberOf(to));
  }
  for (const auto& [host, others] : blocked)
    agents_.Send(host, UseRelay{tree_.NumberOf(host), others});
  tree_.Flatten();  // its agents would not reach each other either
}

// Ranks whose connections go through hvdrun cannot do without it.
void AgentNetwork::AwaitSuccessorAt(uint32_t host) {
  if (options_.successor_key.empty() || !state_.blocked.empty()) return;
  agents_[host].NoteSuccessor();
  agents_.Send(host, AwaitSuccessor{options_.successor_key, DriverGraceMs(options_)});
}

void AgentNetwork::Broadcast(const ToAgent& message) {
  if (tree_.flat()) return agents_.SendToAll(message);
  tree_.ToAll(message);
}

bool AgentNetwork::HandleCut(uint32_t host, const TreeCut& cut, TimePoint now) {
  return tree_.Cut(host, cut.reason, now, LostParentLimit(options_.settings));
}

void AgentNetwork::HandleGone(uint32_t host) {
  if (tree_.Has(host)) relay_.HostGone(tree_.NumberOf(host));
}

void AgentNetwork::AskTimeIfDue(uint32_t host, TimePoint now) {
  if (std::optional<AskTime> question = clocks_.Next(host, now)) agents_.Send(host, *question);
}

void AgentNetwork::Tick(TimePoint now) {
  agents_.Tick();
  for (uint32_t host = 0; host < agents_.count(); ++host) AskTimeIfDue(host, now);
}

void AgentNetwork::BreakOverdue(TimePoint now) {
  for (const auto& [host, reason] : tree_.PopOverdue(now)) agents_[host].Break(reason);
}

TimePoint AgentNetwork::NextTick() const { return std::min(agents_.NextTick(), tree_.NextTick()); }

}  // namespace hvd
