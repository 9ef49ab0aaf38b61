#include "launcher/driver/job_actions.h"

#include <unistd.h>

#include <asio/post.hpp>
#include <map>
#include <utility>
#include <variant>

#include "configs/message_text.h"
#include "launcher/driver/job_settings.h"
#include "launcher/driver/start_job.h"
#include "launcher/text/seconds_text.h"

namespace hvd {
namespace {

std::string CommandText(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

void JobActions::Execute(const JobAction& action, TimePoint now) {
  now_ = now;
  std::visit([this](const auto& a) { On(a); }, action);
}

void JobActions::On(const UsePlan&) {
  parts_.options.plan = parts_.state.plan;
  parts_.screen.UsePlan(parts_.options.plan);
  parts_.log.Info("agents run on all hosts: " + PlanText(parts_.options.plan));
}

// Agents on one machine need no tree: the driver reaches them all at no cost. Those on several
// machines can connect to each other only where addresses are probed.
void JobActions::FormTree() {
  const DriverOptions& options = parts_.options;
  parts_.tree.Form(options.plan, options.several_machines()
                                     ? static_cast<uint32_t>(options.settings.tree_radix)
                                     : UINT32_MAX);
}

void JobActions::On(const ProveAddresses&) {
  FormTree();
  for (uint32_t host : parts_.tree.hosts())
    parts_.agents.Send(host, parts_.connectivity.QuestionFor(host));
}

void JobActions::On(const RelayRoutes& relay) {
  const TreeRouter& tree = parts_.tree;
  // By host: the numbers of the hosts that it does not reach.
  std::map<uint32_t, std::vector<uint32_t>> blocked;
  for (const auto& [from, to] : relay.routes) {
    parts_.relay.Allow(tree.NumberOf(from), tree.NumberOf(to));
    blocked[from].push_back(tree.NumberOf(to));
  }
  for (const auto& [host, others] : blocked)
    parts_.agents.Send(host, UseRelay{tree.NumberOf(host), others});
  parts_.tree.Flatten();  // its agents would not reach each other either
}

void JobActions::On(const StartWorkers&) {
  const DriverOptions& options = parts_.options;
  parts_.screen.HostsReady();
  if (options.several_machines()) parts_.connectivity.Finish(parts_.free_ports[0]);
  FormTree();
  if (options.several_machines())
    parts_.log.Info("the hosts reach each other: " + parts_.connectivity.AddressesText());
  parts_.log.Info("starting " + Printable(CommandText(options.command), kMaxShownPath));
  SendParts();
  ReadStdin();
}

// Each agent gets its part of the job.
void JobActions::SendParts() {
  const StartJob common = CommonStart(parts_.options);
  std::vector<std::vector<Placement>> slots = parts_.options.plan.ByHost();
  for (uint32_t host : parts_.tree.hosts()) {
    StartJob start = StartOn(host, std::move(slots[host]), parts_.options, common);
    parts_.tree.SetPlace(host, start);
    parts_.agents.Send(host, start);
  }
}

// Once the agents know which ranks read it; earlier input would get lost.
void JobActions::ReadStdin() {
  const StdinTo to = CommonStart(parts_.options).stdin_to;
  const std::vector<uint32_t> readers = HostsThatReadStdin(parts_.options.plan, to);
  if (readers.empty()) return;
  parts_.stdin_broadcast.emplace(readers);
  parts_.stdin_reader = std::make_unique<StdinReader>(
      STDIN_FILENO, StdinBroadcast::kWindow, [this](std::string bytes) {
        asio::post(parts_.io,
                   [this, bytes = std::move(bytes)]() mutable { SendStdin(std::move(bytes)); });
      });
}

void JobActions::SendStdin(std::string bytes) {
  if (parts_.options.stdin_terminal) parts_.screen.Typed(bytes);
  parts_.stdin_broadcast->NoteSent(bytes.size());
  const WorkerInput input{std::move(bytes)};
  for (uint32_t host : parts_.stdin_broadcast->readers()) parts_.agents.Send(host, input);
}

void JobActions::On(const BeginGeneration& begin) {
  parts_.kv_service.Begin(begin.generation);
  if (parts_.tree.flat()) return parts_.agents.SendToAll(begin);
  parts_.tree.ToAll(begin);
}

void JobActions::On(const CutChannels&) {
  if (parts_.state.phase == JobPhase::kFinishing) parts_.screen.NoteUnsent();
  for (uint32_t host = 0; host < parts_.agents.count(); ++host) {
    if (parts_.agents[host].away())
      parts_.screen.Print(UntoldText(parts_.NameOf(host), HeartbeatOf(parts_.options, host).grace));
    parts_.agents[host].Cut();
  }
}

void JobActions::On(const NotifyUser& notice) {
  if (!notice.terminal_only || parts_.screen.on_terminal()) parts_.screen.Print(notice.sentence);
}

void JobActions::On(const EndRun&) {
  if (!std::exchange(parts_.job_over, true))
    parts_.log.Info("the job ended with exit code " + std::to_string(ExitCode(parts_.state)) +
                    " after " + SecondsText(now_ - parts_.begun));
}

}  // namespace hvd
