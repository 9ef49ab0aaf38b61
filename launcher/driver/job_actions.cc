#include "launcher/driver/job_actions.h"

#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <map>
#include <utility>
#include <variant>

#include "configs/message_text.h"
#include "discovery/this_machine.h"
#include "launcher/driver/job_settings.h"
#include "launcher/driver/start_job.h"
#include "launcher/job/report/job_result.h"
#include "launcher/output/stdin_reader.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

std::map<uint32_t, std::vector<Member>> ByHost(const std::vector<Member>& members) {
  std::map<uint32_t, std::vector<Member>> by_host;
  for (const Member& member : members) by_host[member.place.host].push_back(member);
  return by_host;
}

}  // namespace

void JobActions::Execute(const JobAction& action, TimePoint now) {
  now_ = now;
  std::visit([this](const auto& a) { On(a); }, action);
}

// Agents answer in order: all rings come before they say that they are gone.
void JobActions::On(const FinishJob& finish) {
  if (parts_.BeginFailureDump(now_)) parts_.agents.SendToAll(AskRings{kFailureDump});
  parts_.agents.SendToAll(finish);
}

void JobActions::On(const UsePlan&) {
  parts_.options.plan = parts_.state.plan;
  parts_.screen.UsePlan(parts_.options.plan);
  parts_.tree.UseRanks(parts_.options.plan);
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

// The workers of a job of fixed size.
void JobActions::StartAll() {
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
  if (!BeginStockWorld(parts_.options.plan.ranks)) return;
  const StartJob common = CommonStart(parts_.options);
  std::vector<std::vector<Placement>> slots = parts_.options.plan.ByHost();
  for (uint32_t host : parts_.tree.hosts()) {
    StartJob start = hvd::StartOn(host, std::move(slots[host]), parts_.options, common);
    if (parts_.stock) start.meeting.rendezvous = parts_.stock->AddressFor(host);
    parts_.tree.SetPlace(host, start);
    AwaitSuccessorAt(host);
    parts_.agents.Send(host, start);
  }
}

// Ranks whose connections go through hvdrun cannot do without it.
void JobActions::AwaitSuccessorAt(uint32_t host) {
  const DriverOptions& options = parts_.options;
  if (options.successor_key.empty() || !parts_.state.blocked.empty()) return;
  parts_.agents[host].NoteSuccessor();
  parts_.agents.Send(
      host, AwaitSuccessor{options.successor_key, CommonStart(options).limits.driver_grace_ms});
}

// Before its workers start. False: they cannot meet, which ends the job.
bool JobActions::BeginStockWorld(const std::vector<Placement>& places) {
  if (!parts_.stock) return true;
  if (const Status begun = parts_.stock->Begin(places); !begun.ok()) {
    parts_.events.Push(WorkerNotStarted{0, EADDRINUSE, begun.message()});
    return false;
  }
  if (const std::string notice = parts_.stock->TakeNotice(); !notice.empty())
    parts_.screen.Print(notice);
  return true;
}

// Once the agents know which ranks read it; earlier input would get lost.
void JobActions::ReadStdin() {
  const DriverOptions& options = parts_.options;
  const StdinTo to = CommonStart(options).program.stdin_to;
  const std::vector<uint32_t> readers = HostsThatReadStdin(options.plan, to);
  if (readers.empty()) return;
  // A rank 0 of this machine has the descriptor itself.
  if (to == StdinTo::kRank0 && !options.hosts[readers[0]].remote &&
      PassesStdin(options.settings.stdin_to))
    return;
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

// Where ranks keep their places, the agents know the members.
void JobActions::On(const BeginWorld& begin) {
  if (parts_.options.policy.ranks_change) return BeginWithMembers(begin);
  parts_.kv_service.Begin(begin.number);
  const BeginGeneration message{begin.number};
  if (parts_.tree.flat()) return parts_.agents.SendToAll(message);
  parts_.tree.ToAll(message);
}

// ---- of an elastic job

void JobActions::UseRunning(const std::set<uint32_t>& hosts) {
  has_part_ = hosts;
  for (uint32_t worker = 0; worker < parts_.state.ranks.size(); ++worker) {
    const RankRecord& rank = parts_.state.ranks[worker];
    const Placement& place = parts_.state.plan.ranks[worker];
    if (rank.alive()) parts_.screen.UseRank(rank.rank, parts_.NameOf(place.host), place.local_rank);
  }
}

void JobActions::On(const OpenHost& open) {
  parts_.agents[open.host].Open();
  parts_.tick_moved = true;  // its first heartbeat is due earlier
}

void JobActions::SendToWorker(uint32_t worker, const ToAgent& message) {
  parts_.agents.Send(parts_.state.plan.ranks[worker].host, message);
}

bool JobActions::OneMachine(const std::vector<Member>& members) const {
  return std::ranges::none_of(
      members, [&](const Member& m) { return parts_.options.hosts[m.place.host].remote; });
}

void JobActions::ShowPlace(const Placement& place) {
  parts_.screen.UseRank(place.rank, parts_.NameOf(place.host), place.local_rank);
}

void JobActions::On(const StartMembers& start) {
  if (!parts_.options.policy.finds_hosts) return StartAll();
  const DriverOptions& options = parts_.options;
  parts_.screen.HostsReady();
  parts_.log.Info("starting " + Printable(CommandText(options.command), kMaxShownPath));
  for (const Member& member : start.members) {
    if (member.place.rank == 0) SetMasterAt(member.place.host);
    ShowPlace(member.place);
  }
  std::vector<Placement> places;
  for (const Member& member : start.members) places.push_back(member.place);
  if (!BeginStockWorld(places)) return;
  const StartJob common = CommonStart(options);
  for (const auto& [host, members] : ByHost(start.members)) StartOn(host, members, start, common);
}

// The address that scripts of torch.distributed are told: rank 0 listens there.
void JobActions::SetMasterAt(uint32_t host) {
  DriverOptions& options = parts_.options;
  options.master_address = !options.any_remote()        ? ""
                           : options.hosts[host].remote ? options.named_hosts[host].host
                                                        : HostName();
  options.master_port = parts_.free_ports[host];
}

// The first workers of a host come with its part of the job.
void JobActions::StartOn(uint32_t host, const std::vector<Member>& members,
                         const StartMembers& start, const StartJob& common) {
  const DriverOptions& options = parts_.options;
  std::vector<Placement> places;
  std::vector<uint32_t> workers;
  for (const Member& member : members) {
    places.push_back(member.place);
    workers.push_back(member.worker);
  }
  if (!has_part_.insert(host).second) {
    AddWorkers more{workers, places, start.size, static_cast<uint8_t>(start.homogeneous)};
    more.master_address = common.meeting.master_address;
    more.master_port = common.meeting.master_port;
    more.restarts = start.restarts;
    if (parts_.stock) more.rendezvous = parts_.stock->AddressFor(host);
    return parts_.agents.Send(host, more);
  }
  StartJob first = hvd::StartOn(host, std::move(places), options, common);
  first.ranks.size = start.size;
  first.ranks.homogeneous = start.homogeneous ? 1 : 0;
  first.ranks.workers = std::move(workers);
  first.meeting.interfaces = options.interfaces;
  first.restarts = {start.restarts, options.policy.failures.most};
  if (parts_.stock) first.meeting.rendezvous = parts_.stock->AddressFor(host);
  parts_.agents.Send(host, first);
}

void JobActions::BeginWithMembers(const BeginWorld& begin) {
  DriverOptions& options = parts_.options;
  const Generation& generation = begin.generation;
  options.plan.homogeneous = generation.homogeneous;
  options.plan.ranks.clear();
  for (const Member& member : generation.members) {
    options.plan.ranks.push_back(member.place);
    ShowPlace(member.place);
  }
  parts_.tree.Reform(options.plan);
  parts_.kv_service.Begin(begin.number);
  BeginGeneration message{begin.number, generation.size(),
                          static_cast<uint8_t>(generation.homogeneous), generation.Layout()};
  message.one_machine = OneMachine(generation.members) ? 1 : 0;
  std::map<uint32_t, std::vector<Member>> by_host = ByHost(generation.members);
  for (uint32_t host : has_part_) {
    message.members = std::move(by_host[host]);
    parts_.agents.Send(host, message);
  }
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
  const std::optional<JobFailure>& failure = parts_.state.failure;
  if (parts_.launcher != nullptr)
    parts_.launcher->End(failure && failure->kind == JobFailure::Kind::kLauncher);
  if (!std::exchange(parts_.job_over, true))
    parts_.log.Info(Format("the job ended with exit code {} after {}", ExitCode(parts_.state),
                           SecondsText(now_ - parts_.begun)));
}

}  // namespace hvd
