#include "launcher/driver/agent_messages.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "launcher/wire/message_rights.h"
#include "runtime/base/text/format.h"
#include "runtime/net/trouble.h"

namespace hvd {

void AgentMessages::Receive(uint32_t host, ToDriver& message, TimePoint now) {
  now_ = now;
  if (Status may = CheckSender(host, message); !may.ok())
    return network_.agents().BreakUnless(host, may);
  Dispatch(host, message);
  network_.Flush();
}

// An agent may speak of its own workers and ranks only. Where ranks change, messages about workers
// have their numbers, and the keys of a generation its ranks.
Status AgentMessages::CheckSender(uint32_t host, const ToDriver& message) const {
  const std::optional<uint32_t> worker =
      state_.policy().ranks_change ? WorkerIn(message) : std::nullopt;
  if (worker) return CheckWorker(*worker, host, state_.plan.ranks);
  const bool started = state_.phase != JobPhase::kOpening && network_.tree().formed();
  return network_.tree().CheckDirect(host, message, started);
}

void AgentMessages::Dispatch(uint32_t host, ToDriver& message) {
  std::visit([&](auto& m) { On(host, m); }, message);
}

// ---- the network of agents

void AgentMessages::On(uint32_t host, const ConnectivityProbed& probed) {
  ConnectivityRound::Answer answer = network_.connectivity().Handle(host, probed);
  for (const std::string& note : answer.notes) log_.Verbose(note);
  events_.Push(answer.event);
}

void AgentMessages::On(uint32_t host, const RelayMeasured& measured) {
  const TreeRouter& tree = network_.tree();
  if (measured.host < tree.count())
    events_.Push(RouteMeasured{host, tree.hosts()[measured.host], measured});
}

void AgentMessages::On(uint32_t host, const TimeReply& reply) {
  if (std::optional<ClockReading> reading = network_.clocks().HandleReply(host, reply, now_))
    events_.Push(ClockRead{host, *reading});
  network_.AskTimeIfDue(host, now_);
}

void AgentMessages::On(uint32_t host, const TreeUp& batch) {
  if (state_.phase == JobPhase::kOpening)
    return network_.agents()[host].Break("its agent sent a message of a tree, but there is none");
  auto messages = network_.OpenBatch(host, batch);
  if (!messages.ok()) return network_.agents().BreakUnless(host, messages.status());
  for (auto& [from, message] : *messages) Dispatch(from, message);
}

void AgentMessages::On(uint32_t host, const TreeCut& cut) {
  if (network_.HandleCut(host, cut, now_))
    log_.Verbose("host " + state_.plan.hosts[host] + " lost its place in the tree: " + cut.reason);
}

void AgentMessages::On(uint32_t host, PutKey& put) {
  KvService& directory = network_.directory();
  if (!directory.IsCurrent(host, put.generation)) return;
  if (const std::optional<Trouble> trouble = DecodeTrouble(put.key, put.value)) {
    to_.hangs.HandleTrouble(host, put.generation, *trouble, now_);
  } else {
    network_.agents().BreakUnless(host, directory.Put(host, std::move(put)));
  }
}

// Every agent learns of it: the ranks of other hosts connect there, too.
void AgentMessages::On(uint32_t host, const MasterPortTaken& taken) {
  const Placement* first = state_.PlaceOf(0);
  if (first == nullptr || first->host != host) return;
  const std::string trouble = Format(
      "another user (uid {}) listens on port {} of host {}, which "
      "MASTER_PORT names",
      taken.uid, taken.port, state_.plan.hosts[host]);
  hosts_.set_master_port_trouble(trouble);
  screen_.Print(trouble +
                "; the job goes on, and ends if one of its ranks connects there (a script "
                "that needs the port: -x MASTER_PORT=N names another one)");
  AgentSet& agents = network_.agents();
  for (uint32_t other = 0; other < agents.count(); ++other) {
    if (other != host && state_.host_open[other]) agents.Send(other, taken);
  }
}

// ---- workers

void AgentMessages::On(uint32_t, const WorkerStarted& started) {
  to_.hangs.ForgetFlights();
  screen_.WorkerStarted();
  events_.Push(started);
}

void AgentMessages::On(uint32_t, const RankJoined& joined) {
  screen_.RankJoined(state_.ranks[joined.rank].rank);
  events_.Push(joined);
}

void AgentMessages::On(uint32_t host, const RanksJoined& joined) {
  ForEachRank(joined, state_.size(), [&](RankJoined rank) { On(host, rank); });
}

void AgentMessages::On(uint32_t host, const GenerationIdle& idle) {
  events_.Push(HostIdle{host, idle.generation, std::chrono::milliseconds(idle.idle_ms)});
}

}  // namespace hvd
