#include "launcher/driver/driver_parts.h"

#include <asio/post.hpp>
#include <csignal>
#include <set>
#include <utility>

#include "launcher/driver/job_outline.h"
#include "launcher/driver/job_settings.h"
#include "launcher/job/report/describe_end.h"
#include "launcher/process/jobs/job_id.h"
#include "runtime/base/clock.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kTellPrintedEvery = std::chrono::milliseconds(20);

}  // namespace

DriverParts::DriverParts(DriverOptions the_options, EventQueue& the_events, TimePoint now)
    : events(the_events),
      options(std::move(the_options)),
      begun(options.taken_over ? TimePoint(Duration(options.taken_over->begun_ns)) : now),
      state(options.plan, JobOptionsOf(options), options.named_hosts, options.policy,
            ParseJobId(options.job_id).value_or(0)),
      tree([this](uint32_t host, const ToAgent& message) { agents.Send(host, message); }),
      connectivity(options, tree),
      kv_service(tree),
      relay([this](uint32_t number, const ToAgent& message) {
        agents.Send(tree.hosts()[number], message);
      }),
      troubles(RouteSilenceLimit(options.settings)),
      stalls([this](uint32_t host, const ExamineRanks& question) { agents.Send(host, question); }),
      script_stalls(ScriptWarningMs(options.settings),
                    int64_t{1000} * options.settings.stall_shutdown_seconds),
      flights([this](uint32_t host, const AskFlight& question) { agents.Send(host, question); }),
      clock_schedule(options.plan.hosts.size()),
      free_ports(options.plan.hosts.size()),
      facts(options.plan.hosts.size()),
      screen(
          io, options.plan, options.policy.most_workers(), options.settings, options.prefix,
          [this](uint32_t host, uint64_t bytes) {
            agents[host].ReturnCredit(bytes);
            if (options.printed) TellPrintedSoon();
          },
          options.printed),
      log(LogLevelOf(options.settings), options.plan, screen),
      live(io, LiveHooks()) {
  if (options.settings.stock_horovod) stock = std::make_unique<StockWorlds>(io, options);
}

std::unique_ptr<TimelineService> DriverParts::OpenTimelineFile(const std::string& path,
                                                               uint64_t most_bytes,
                                                               uint64_t most_steps, TimePoint now) {
  TimelineOptions file{path,
                       begun.time_since_epoch().count(),
                       (WallNanoseconds() - (now - begun).count()) / 1000,
                       most_bytes,
                       options.settings.timeline_keep == TimelineKeep::kLast,
                       most_steps};
  const auto say = [this](const std::string& sentence) {
    screen.Print(sentence + (state.failure ? "" : "; the job goes on without it"));
  };
  auto opened = TimelineService::Open(
      file, {[this](uint32_t host, uint64_t bytes) {
               asio::post(io, [this, host, bytes] { agents.Send(host, TraceTaken{bytes}); });
             },
             [this, say](const std::string& sentence) {
               asio::post(io, [say, sentence] { say(sentence); });
             }});
  if (opened.ok()) return std::move(*opened);
  say(opened.status().message());
  return nullptr;
}

bool DriverParts::BeginFailureDump(TimePoint now) {
  const std::string& path = options.settings.dump_on_failure;
  if (path.empty() || !state.failure || failure_dump != nullptr) return false;
  failure_dump = OpenTimelineFile(path, 0, 0, now);
  return failure_dump != nullptr;
}

LiveService::Hooks DriverParts::LiveHooks() {
  return {[this] { return OutlineOf(state, options.job_id); }, [this] { return HostsAtWork(); },
          [this](uint32_t host, const ToAgent& message) { agents.Send(host, message); },
          [this](uint32_t host) { return NameOf(host); },
          [this](uint32_t host) -> const HostClock& { return state.clocks[host]; }};
}

// The agents keep what they have not heard of. Not for every line.
void DriverParts::TellPrintedSoon() {
  if (std::exchange(tells_printed, true)) return;
  printed_timer.expires_after(kTellPrintedEvery);
  printed_timer.async_wait([this](const asio::error_code& error) {
    tells_printed = false;
    if (error) return;
    for (const OutputPrinted& printed : screen.PopPrinted())
      agents.Send(state.plan.ranks[printed.rank].host, printed);
    if (screen.HoldsBack()) TellPrintedSoon();
  });
}

// Those that have workers; none while the plan may change.
std::vector<uint32_t> DriverParts::HostsAtWork() const {
  if (state.phase == JobPhase::kOpening) return {};
  std::set<uint32_t> hosts;
  for (uint32_t worker = 0; worker < state.ranks.size(); ++worker) {
    const uint32_t host = state.plan.ranks[worker].host;
    if (state.ranks[worker].running() && state.host_open[host]) hosts.insert(host);
  }
  return {hosts.begin(), hosts.end()};
}

void DriverParts::AddHost(const HostSlots& listing) {
  // The state may know of more hosts that are about to be added.
  options.plan.hosts.push_back(state.plan.hosts[options.plan.hosts.size()]);
  options.named_hosts.push_back(listing);
  options.hosts.push_back({listing.remote, {}});
  clock_schedule.AddHost();
  free_ports.push_back(0);
  facts.emplace_back();
}

// Where ranks that train stop at a commit, SIGUSR1 is a request to do so and nothing else.
void DriverParts::ForwardToRanks(int signal) {
  const bool at_commit = options.policy.stops_at_commit;
  if (signal == SIGUSR1 && at_commit && (state.elastic.running || state.elastic.stop_asked))
    return events.Push(StopAsked{signal, {}});
  const std::vector<uint32_t> hosts = HostsAtWork();
  if (hosts.empty())
    return TellUnlessEnding("no rank runs yet that could get " + SignalText(signal) +
                            "; the job goes on");
  const ForwardSignal message = forwarded_signals.Begin(signal, hosts);
  for (uint32_t host : hosts) agents.Send(host, message);
  if (signal == SIGUSR1 && !at_commit) events.Push(StopAsked{signal, {}});
}

void DriverParts::HandleWarning(uint32_t host, const SignalForwarded& answer, TimePoint now) {
  TellUnlessEnding(forwarded_signals.Take(host, NameOf(host), answer, now));
}

void DriverParts::TellUnlessEnding(const std::string& sentence) {
  if (!sentence.empty() && !state.asked()) screen.Print(sentence);
}

// Every agent learns of it: the ranks of other hosts connect there, too.
void DriverParts::HandleWarning(uint32_t host, const MasterPortTaken& taken, TimePoint) {
  const std::vector<Placement>& ranks = options.plan.ranks;
  if (ranks.empty() || ranks[0].host != host) return;
  port_taken = Format(
      "another user (uid {}) listens on port {} of host {}, which "
      "MASTER_PORT names",
      taken.uid, taken.port, NameOf(host));
  screen.Print(*port_taken +
               "; the job goes on, and ends if one of its ranks connects there (a script "
               "that needs the port: -x MASTER_PORT=N names another one)");
  for (uint32_t other = 0; other < agents.count(); ++other) {
    if (other != host && state.host_open[other]) agents.Send(other, taken);
  }
}

}  // namespace hvd
