#include "launcher/driver/agent_messages.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "configs/message_text.h"
#include "launcher/driver/job_outline.h"
#include "launcher/driver/job_settings.h"
#include "launcher/driver/start_job.h"
#include "launcher/wire/message_rights.h"
#include "runtime/base/text/format.h"

namespace hvd {

void AgentMessages::Receive(uint32_t host, ToDriver& message, TimePoint now) {
  now_ = now;
  if (Status may = MaySay(host, message); !may.ok()) return parts_.agents.BreakUnless(host, may);
  Take(host, message);
  parts_.tree.Flush();
}

// An agent may speak of its own workers and ranks only. Where ranks change, messages about workers
// have their numbers, and the keys of a generation its ranks.
Status AgentMessages::MaySay(uint32_t host, const ToDriver& message) const {
  const std::optional<uint32_t> worker =
      parts_.options.policy.ranks_change ? WorkerIn(message) : std::nullopt;
  if (!worker) {
    const bool started = parts_.state.phase != JobPhase::kOpening && parts_.tree.formed();
    return parts_.tree.CheckDirect(host, message, started);
  }
  return CheckWorker(*worker, host, parts_.state.plan.ranks);
}

void AgentMessages::Take(uint32_t host, ToDriver& message) {
  std::visit([&](auto& m) { On(host, m); }, message);
}

void AgentMessages::On(uint32_t host, const AgentReady& ready) {
  parts_.log.Verbose(Format("agent on host {}: pid {}, warden {}; cleanup is guaranteed by: {}",
                            parts_.NameOf(host), ready.pid, ready.warden_pid, ready.means));
  if (ready.version != HVD_VERSION) {
    return parts_.agents[host].Break("it has hvdrun " + Printable(ready.version) +
                                     " and this is hvdrun " HVD_VERSION
                                     "; install the same version there");
  }
  const DriverOptions& options = parts_.options;
  if (options.hosts[host].remote) parts_.clock_schedule.Begin(host);
  AskTimeIfDue(host, now_);
  parts_.free_ports[host] = ready.free_port;
  parts_.facts[host].identity = ready.identity;
  parts_.facts[host].slots = ready.slots;
  parts_.facts[host].cpus = ready.cpus;
  // On a single host there is no other command to differ from; where hosts come later, the first
  // worker there tells.
  const bool finds_hosts = options.policy.finds_hosts;
  const bool path_first = finds_hosts && !options.successor_key.empty();
  if (path_first) return;  // it is said next
  if (parts_.agents.count() == 1 || finds_hosts) return IsReady(host);
  parts_.agents.Send(
      host, LookAtCommand{options.command.at(0), PathOfWorkers(options), options.directory});
}

// From here on the agent of an elastic job outlives this hvdrun, which the record then says.
void AgentMessages::On(uint32_t host, const AgentPath&) {
  if (!parts_.options.policy.finds_hosts || parts_.options.successor_key.empty()) return;
  actions_.AwaitSuccessorAt(host);
  IsReady(host);
}

void AgentMessages::On(uint32_t host, CommandReport& report) {
  parts_.facts[host].command = std::move(report.facts);
  IsReady(host);
}

// Where workers of stock Horovod meet depends on the way to their host.
void AgentMessages::IsReady(uint32_t host) {
  const auto tell = [this, host] {
    if (parts_.state.host_open[host]) parts_.events.Push(AgentIsReady{host, parts_.facts[host]});
  };
  if (!parts_.stock) return tell();
  parts_.stock->Learn(host, tell);
}

void AgentMessages::On(uint32_t host, const ConnectivityProbed& probed) {
  ConnectivityRound::Answer answer = parts_.connectivity.Take(host, probed);
  for (const std::string& note : answer.notes) parts_.log.Verbose(note);
  parts_.events.Push(answer.event);
}

void AgentMessages::On(uint32_t host, const RelayMeasured& measured) {
  if (measured.host < parts_.tree.count())
    parts_.events.Push(RouteMeasured{host, parts_.tree.hosts()[measured.host], measured});
}

void AgentMessages::AskTimeIfDue(uint32_t host, TimePoint now) {
  if (std::optional<AskTime> question = parts_.clock_schedule.Next(host, now))
    parts_.agents.Send(host, *question);
}

void AgentMessages::On(uint32_t host, const TimeReply& reply) {
  if (std::optional<ClockReading> reading = parts_.clock_schedule.Take(host, reply, now_))
    parts_.events.Push(ClockRead{host, *reading});
  AskTimeIfDue(host, now_);
}

void AgentMessages::On(uint32_t, const WorkerStarted& started) {
  parts_.flights.Forget();  // of ranks that this one replaces
  parts_.screen.WorkerStarted();
  parts_.events.Push(started);
}

void AgentMessages::On(uint32_t, const RankJoined& joined) {
  parts_.screen.RankJoined(parts_.RankOf(joined.rank));
  parts_.events.Push(joined);
}

void AgentMessages::On(uint32_t host, const RanksJoined& joined) {
  ForEachRank(joined, parts_.options.plan.size(), [&](RankJoined rank) { On(host, rank); });
}

void AgentMessages::On(uint32_t host, const InputTaken& taken) {
  if (!parts_.stdin_broadcast) return;
  Result<uint64_t> more = parts_.stdin_broadcast->Take(host, taken.bytes);
  if (!more.ok()) return parts_.agents.BreakUnless(host, more.status());
  if (*more > 0) parts_.stdin_reader->Allow(*more);
}

void AgentMessages::On(uint32_t host, PutKey& put) {
  if (!parts_.kv_service.IsCurrent(host, put.generation)) return;
  const std::optional<Trouble> trouble = DecodeTrouble(put.key, put.value);
  if (!trouble) return parts_.agents.BreakUnless(host, parts_.kv_service.Put(host, std::move(put)));
  const std::optional<JobEvent> event =
      parts_.troubles.Take(parts_.options.plan, host, put.generation, *trouble, now_);
  parts_.tick_moved = true;
  if (event) parts_.events.Push(*event);
}

void AgentMessages::On(uint32_t, const StallReport& report) {
  if (report.generation != parts_.state.generation || parts_.state.asked()) return;
  parts_.stalls.Begin(parts_.options.plan, report, now_);
  parts_.tick_moved = true;
}

void AgentMessages::On(uint32_t host, const RanksExamined& examined) {
  const Plan& plan = parts_.options.plan;
  Status taken = parts_.stalls.Take(plan, host, examined);
  if (!taken.ok()) return parts_.agents.BreakUnless(host, taken);
  if (std::optional<StallExplained> stall = parts_.stalls.Result(plan, now_))
    parts_.events.Push(*stall);
  parts_.tick_moved = true;
}

void AgentMessages::On(uint32_t host, const ScriptObserved& observed) {
  for (const ScriptObservation& seen : observed.ranks) {
    if (Status own = CheckWorker(seen.worker, host, parts_.state.plan.ranks); !own.ok())
      return parts_.agents.BreakUnless(host, own);
  }
  parts_.script_stalls.Take(host, observed);
  std::optional<ScriptStall> stall = parts_.script_stalls.Look(ScriptRanksOf(parts_.state));
  const Duration warning = std::chrono::milliseconds(ScriptWarningMs(parts_.options.settings));
  if (stall)
    parts_.flights.Begin(std::move(*stall), parts_.HostsAtWork(), now_);
  else if (parts_.script_stalls.unexplained())
    parts_.flights.Suspect(parts_.HostsAtWork(), warning, now_);
  else
    return;
  TellScriptStall(now_);
}

void AgentMessages::On(uint32_t host, const FlightReply& reply) {
  for (const FlightRecord& record : reply.records) {
    if (Status own = CheckWorker(record.worker, host, parts_.state.plan.ranks); !own.ok())
      return parts_.agents.BreakUnless(host, own);
  }
  parts_.flights.Take(host, reply);
  TellScriptStall(now_);
}

void AgentMessages::TellScriptStall(TimePoint now) {
  if (std::optional<ScriptStall> stall = parts_.flights.Result(parts_.options.plan.size(), now))
    parts_.events.Push(*stall);
  parts_.tick_moved = true;
}

void AgentMessages::On(uint32_t host, const WantKey& want) {
  parts_.agents.BreakUnless(host, parts_.kv_service.Want(host, want));
}

void AgentMessages::On(uint32_t host, const TreeUp& batch) {
  if (parts_.state.phase == JobPhase::kOpening)
    return parts_.agents[host].Break("its agent sent a message of a tree, but there is none");
  auto messages = parts_.tree.Open(host, batch);
  if (!messages.ok()) return parts_.agents.BreakUnless(host, messages.status());
  for (auto& [from, message] : *messages) Take(from, message);
}

void AgentMessages::On(uint32_t host, const TreeCut& cut) {
  const Duration patience = LostParentLimit(parts_.options.settings);
  if (!parts_.tree.Cut(host, cut.reason, now_, patience)) return;
  parts_.log.Verbose("host " + parts_.NameOf(host) + " lost its place in the tree: " + cut.reason);
  parts_.tick_moved = true;
}

}  // namespace hvd
