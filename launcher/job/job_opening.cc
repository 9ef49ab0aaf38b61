#include "launcher/job/job_opening.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job/host_records/command_trouble.h"
#include "launcher/job/host_records/final_plan.h"
#include "launcher/job/host_records/host_stages.h"
#include "launcher/job/job_ending.h"
#include "launcher/job/job_places.h"
#include "launcher/job/policy/rank_order.h"
#include "launcher/overlay/relay/relay_plan.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/status.h"

namespace hvd {
namespace {

void Dismiss(JobChange& change, uint32_t host) {
  change.state.dismissed[host] = true;
  change.state.dismissed_by = change.now + change.state.options.finish_limit;
  change.state.stages.Enter(host, HostStage::kReady, change.now);
  change.Do(DismissHost{host});
}

// All agents are connected. False: no plan is possible, and the job ends.
bool FinalizePlan(JobChange& change) {
  if (change.state.named_hosts.empty()) return true;
  Result<FinalPlan> final =
      MakeFinalPlan(change.state.named_hosts, change.state.facts, change.state.plan.size());
  if (!final.ok()) {
    JobFailure failure;
    failure.kind = JobFailure::Kind::kHosts;
    failure.exit_code = kUsageError;
    failure.reason = final.status().message() + ". Nothing was started.\n";
    FailJob(change, std::move(failure), "the hosts have too few slots");
    return false;
  }
  change.state.plan = std::move(final->plan);
  change.Do(UsePlan{});
  for (std::string& note : final->notes) change.Do(NotifyUser{std::move(note)});
  for (uint32_t host : final->no_rank) Dismiss(change, host);
  return true;
}

// False: some host cannot start the command, and the job ends.
bool CommandIsThere(JobChange& change) {
  std::vector<std::string> names;
  std::vector<CommandFacts> facts;
  for (uint32_t host : change.state.plan.UsedHosts()) {
    names.push_back(change.state.plan.hosts[host]);
    facts.push_back(change.state.facts[host].command);
  }
  if (std::optional<CommandTrouble> trouble = FindCommandTrouble(names, facts)) {
    JobFailure failure;
    failure.kind = JobFailure::Kind::kCommand;
    failure.exit_code = trouble->exit_code;
    failure.reason = std::move(trouble->sentence);
    FailJob(change, std::move(failure), "a host cannot start the command");
    return false;
  }
  std::string differ = PythonsDiffer(names, facts);
  if (!differ.empty()) change.Do(NotifyUser{std::move(differ)});
  return true;
}

// Every host has probed the others, and some routes are blocked.
void HandleBlockedRoutes(JobChange& change) {
  const std::string why_not =
      ReasonNotRelayed(change.state.options.relay, change.state.plan.UsedHosts().size());
  std::sort(change.state.blocked.begin(), change.state.blocked.end(),
            [](const auto& a, const auto& b) {
              return std::pair(a.from, a.to) < std::pair(b.from, b.to);
            });
  RelayRoutes relay;
  for (const BlockedRoute& route : change.state.blocked) {
    relay.routes.emplace_back(route.from, route.to);
    change.state.stages.Enter(route.from, HostStage::kProof, change.now);
    if (!why_not.empty())
      change.state.stages.Fail(
          route.from, TroubleOfBlocked(change.state.blocked, route.from, why_not), change.now);
  }
  if (why_not.empty()) change.Do(std::move(relay));
}

}  // namespace

void EnterStage(JobChange& change, const HostEntered& event) {
  if (change.state.phase != JobPhase::kOpening && !change.MayReplace()) return;
  bool again = change.state.stages.stage(event.host) == event.stage;
  change.state.stages.Enter(event.host, event.stage, change.now);
  change.decision.detail = true;
  if (again && event.stage != HostStage::kResolve) return;  // or part of hvdrun has been sent
  change.SetReason("host " + change.state.plan.hosts[event.host] + ": " + StageText(event.stage));
}

void NoteTrouble(JobChange& change, const HostTroubled& event) {
  if (change.state.phase != JobPhase::kOpening && !change.MayReplace()) return;
  const bool known = change.state.stages.tried_again(event.host);
  change.state.stages.Trouble(event.host, event.trouble, change.now);
  if (known) return;
  change.SetReason("host " + change.state.plan.hosts[event.host] + ": " + event.trouble.reason +
                   "; it is tried again");
}

// While the job is opening: starts it when all hosts are ready, or ends it when one is lost.
void ReviewHosts(JobChange& change) {
  if (change.state.stages.All(HostStage::kReady)) {
    if (!AllPlacesTaken(change)) return;
    change.state.phase = JobPhase::kStarting;
    change.state.deadline = change.now + change.state.options.start_timeout;
    const Generation planned = GenerationOf(change.state.plan);
    change.Do(StartMembers{planned.members, planned.size(), planned.homogeneous});
    change.decision.detail = true;  // the next message names the command
    return change.SetReason("all hosts are ready");
  }
  if (!change.state.stages.Lost(change.now)) return;
  JobFailure failure;
  failure.kind = JobFailure::Kind::kHosts;
  failure.host = change.state.stages.first_failed();
  failure.reason = change.state.stages.Report(change.state.plan.hosts);
  FailJob(change, std::move(failure), "a host cannot be used");
}

void HandleReady(JobChange& change, const AgentIsReady& event) {
  if (change.state.phase != JobPhase::kOpening) return;
  if (change.state.stages.stage(event.host) >= HostStage::kProof) return;
  change.state.stages.Enter(event.host, HostStage::kThere, change.now);
  change.state.facts[event.host] = event.facts;
  if (!change.state.stages.All(HostStage::kThere)) return ReviewHosts(change);
  if (!FinalizePlan(change) || !CommandIsThere(change)) return;
  std::vector<uint32_t> used = change.state.plan.UsedHosts();
  bool prove = change.state.options.prove_addresses && used.size() > 1;
  for (uint32_t host : used)
    change.state.stages.Enter(host, prove ? HostStage::kProof : HostStage::kReady, change.now);
  if (!prove) return ReviewHosts(change);
  change.Do(ProveAddresses{});
}

void Adopt(JobChange& change, const Adopted& event) {
  JobState& state = change.state;
  state.stages.Begin(change.now);
  if (state.options.timeout > Duration::zero())
    state.timeout_at = event.begun + state.options.timeout;
  const std::vector<uint32_t> used = state.plan.UsedHosts();
  for (uint32_t host = 0; host < state.plan.hosts.size(); ++host) {
    state.stages.Enter(host, HostStage::kReady, change.now);
    if (std::ranges::find(used, host) == used.end()) state.host_open[host] = false;
  }
  state.phase = JobPhase::kStarting;
  state.deadline = change.now + state.options.start_timeout;
  state.generation = event.generation > 0 ? event.generation - 1 : 0;
  if (event.failure) {
    std::string reason = event.failure->reason;
    return FailJob(change, *event.failure, std::move(reason));
  }
  if (!event.incomplete) return;
  JobFailure failure;
  failure.kind = JobFailure::Kind::kInternal;
  failure.reason = "hvdrun was killed before it had started the job on all hosts";
  std::string reason = failure.reason;
  FailJob(change, std::move(failure), std::move(reason));
}

void HandleProof(JobChange& change, const HostProven& event) {
  if (change.state.phase != JobPhase::kOpening) return;
  if (!event.trouble.empty()) {
    change.state.stages.Fail(event.host, event.trouble, change.now);
    return ReviewHosts(change);
  }
  change.state.blocked.insert(change.state.blocked.end(), event.blocked.begin(),
                              event.blocked.end());
  change.state.stages.Enter(
      event.host, event.blocked.empty() ? HostStage::kReady : HostStage::kThere, change.now);
  if (!change.state.blocked.empty() && change.state.stages.NoneInFlight() &&
      !change.state.stages.any_failed())
    HandleBlockedRoutes(change);
  ReviewHosts(change);
}

void HandleMeasured(JobChange& change, const RouteMeasured& event) {
  if (change.state.phase != JobPhase::kOpening) return;
  bool host_done = true, all_done = true;
  for (BlockedRoute& route : change.state.blocked) {
    if (route.from == event.host && route.to == event.to) {
      route.speed = event.speed;
      route.measured = true;
    }
    host_done = host_done && (route.measured || route.from != event.host);
    all_done = all_done && route.measured;
  }
  if (!event.speed.trouble.empty()) {
    change.state.stages.Fail(event.host,
                             "relaying through this host failed: " + event.speed.trouble +
                                 "; look at the load of this machine",
                             change.now);
  } else if (host_done) {
    change.state.stages.Enter(event.host, HostStage::kReady, change.now);
  }
  if (all_done && !change.state.stages.any_failed())
    change.Do(NotifyUser{RelayWarning(change.state.blocked, change.state.plan.hosts,
                                      change.state.plan.UsedHosts().size())});
  ReviewHosts(change);
}

void CutDismissed(JobChange& change) {
  if (!change.state.dismissed_by || change.now < *change.state.dismissed_by) return;
  change.state.dismissed_by.reset();
  for (uint32_t host = 0; host < change.state.host_open.size(); ++host) {
    if (change.state.dismissed[host] && change.state.host_open[host]) change.Do(CutHost{host});
  }
}

}  // namespace hvd
