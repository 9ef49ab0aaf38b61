#include "launcher/driver/driver.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "launcher/driver/agent_messages.h"
#include "launcher/driver/driver_parts.h"
#include "launcher/driver/event_queue.h"
#include "launcher/driver/function_channel.h"
#include "launcher/driver/job_actions.h"
#include "launcher/driver/job_outline.h"
#include "launcher/driver/job_settings.h"
#include "launcher/driver/job_signals.h"
#include "launcher/driver/run_watch.h"
#include "launcher/driver/takeover/adoption.h"
#include "launcher/driver/takeover/elastic_adoption.h"
#include "launcher/driver/takeover/job_record.h"
#include "launcher/job/error_file.h"
#include "launcher/job/job_pause.h"
#include "launcher/job/report/failure_code.h"
#include "launcher/job/report/failure_hint.h"
#include "launcher/job/report/job_result.h"
#include "launcher/job/report/report.h"
#include "launcher/output/output.h"
#include "launcher/process/jobs/driver_status.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/links/record_link.h"
#include "launcher/process/uncaught.h"
#include "runtime/base/clock.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/text/format.h"
#include "runtime/base/time_numbers.h"

namespace hvd {
namespace {

constexpr int kCannotGoOn = 1;
// How long the screen may take to show the last output, for each stream. A pager is read when its
// user has the time, but a job that was asked to end does not wait for it.
constexpr auto kPatience = std::chrono::hours(24 * 365);
constexpr auto kOutputLimit = std::chrono::seconds(1);

// A person at a terminal reads a traceback once.
TracebackPlace PlaceOfTraceback(const DriverParts& parts) {
  const std::optional<uint32_t> cause = FirstFailedRank(parts.state);
  if (!cause) return TracebackPlace::kInReport;
  const auto& end = parts.state.ranks[*cause].end;
  return end && parts.screen.Shows(end->last_stderr) ? TracebackPlace::kAbove
                                                     : TracebackPlace::kInReport;
}

// The hint about how the command, or a port that is taken, explains the failure of a rank.
std::string Hint(const DriverParts& parts) {
  const JobState& state = parts.state;
  if (!state.failure || state.failure->kind != JobFailure::Kind::kRank) return "";
  const std::optional<uint32_t> cause = FirstFailedRank(state);
  return cause ? FailureHint(parts.options.command,
                             state.ranks[*cause].end ? state.ranks[*cause].end->last_stderr : "",
                             parts.port_taken.value_or(""))
               : "";
}

// Writes the error file of a job that failed; the sentence when it cannot.
std::string WriteErrorFileIfFailed(const JobState& state, const DriverOptions& options) {
  const std::string& path = options.settings.error_file;
  if (path.empty() || !state.failure) return "";
  Status status = WriteErrorFile(path, ErrorJson(state, options.job_id, options.command));
  return status.ok() ? "" : "hvdrun: " + status.message() + "\n";
}

// A worker went, and not because all is done.
bool IsFailedEnd(const JobEvent& event) {
  const auto* exited = std::get_if<WorkerExited>(&event);
  return exited != nullptr && !exited->end.ok();
}

// What the agents know as well as hvdrun does, once that has happened.
bool IsKnownToAgents(const JobEvent& event) {
  return std::holds_alternative<WorkerStarted>(event) ||
         std::holds_alternative<RankJoined>(event) || std::holds_alternative<ClockRead>(event) ||
         std::holds_alternative<HostIdle>(event);
}

// The hosts of a job of fixed size, which a driver that takes it over does not open again.
void UseHostsOf(const TakeoverRecord& record, DriverOptions& options) {
  options.plan = PlanOf(record);
  options.named_hosts.clear();  // the plan is final
  options.hosts.resize(record.hosts.size());
  for (size_t host = 0; host < record.hosts.size(); ++host)
    options.hosts[host].addresses = record.hosts[host].addresses;
}

// The hosts that an elastic job has found, from this one on: it opens one after the other now.
std::vector<HostSlots> HostsFrom(uint32_t host, const ElasticState& elastic) {
  std::vector<HostSlots> found;
  for (size_t at = host; at < elastic.hosts.size(); ++at)
    found.push_back(elastic.hosts[at].listing);
  return found;
}

// Brings what happens to the job, on its hosts and around hvdrun, to the state machine.
class Driver final : public AgentConnectionObserver {
 public:
  Driver(DriverOptions options, ChannelFactory& channels, const HostWatchMaker& watch_hosts,
         LauncherMaker make_launcher);

  int Run();

  void OnHostStage(uint32_t host, HostStage stage) override {
    events_.Push(HostEntered{host, stage});
  }
  void OnHostTrouble(uint32_t host, HostStage stage, const std::string& reason) override {
    events_.Push(HostTroubled{host, stage, reason});
  }
  void OnHostNote(uint32_t host, const std::string& text) override {
    parts_.log.VerboseHost(host, text);
  }
  void OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) override;
  void OnMessage(uint32_t host, ToDriver message) override {
    if (adoption_) return OnAdopted(host, std::move(message));
    messages_.Receive(host, message, SteadyNow());
    ScheduleTickIfMoved();
  }
  void OnReadOver(uint32_t) override { parts_.screen.Flush(); }
  void OnHostAway(uint32_t host, const std::string& reason) override;
  void OnHostBack(uint32_t host, Duration away) override {
    parts_.screen.Print(BackText(parts_.NameOf(host), away));
  }
  void OnHvdrunSkipped(uint32_t host, const std::string& what) override {
    parts_.log.HvdrunSkipped(host, what);
  }
  void OnHostEnd(uint32_t host, const std::string& reason) override;

 private:
  void OnAdopted(uint32_t host, ToDriver message);
  void AddAgent(uint32_t host);
  void TakeOverAgents();
  void Adopt();
  void AdoptElastic(Adoption adoption);
  void GoOnWithHosts(const TakeoverRecord& record);
  void LeaveRecordIfNews();
  void LeaveElasticRecord(const JobEvent& event, const Decision& decision);
  TakeoverRecord BeginRecord() const;
  void Leave(const TakeoverRecord& record);
  std::string LastOutput() const;
  void OpenTimeline();
  void CloseTimelines();
  void OpenLive();
  void OpenFunctionChannel();
  void WatchHosts();
  void RunLauncher();
  void OnLauncherOver(const LauncherEnd& end);
  void Begin();
  int Finish();
  void Handle(const JobEvent& event);
  void Execute(const JobAction& action);
  void StopWhenCleared();
  void CleanUp(uint32_t host);
  void OnSignal(int signal);
  void WatchOwnRun();
  void LookAtOwnRun();
  void ScheduleDeadline();
  void ScheduleTick();
  void ScheduleTickIfMoved() {
    if (std::exchange(parts_.tick_moved, false)) ScheduleTick();
  }
  void Tick(TimePoint now);

  EventQueue events_{[this](const JobEvent& event) { Handle(event); }};
  DriverParts parts_;
  ChannelFactory& channels_;
  const LauncherMaker make_launcher_;
  JobActions actions_{parts_};
  AgentMessages messages_{parts_, actions_};
  JobSignals signals_{parts_.io, [this](int signal) { OnSignal(signal); }};
  asio::steady_timer deadline_timer_{parts_.io}, tick_timer_{parts_.io}, run_timer_{parts_.io};
  RunWatch run_watch_;                                      // of an elastic job
  std::unique_ptr<HostWatch> host_watch_;                   // of an elastic job
  std::unique_ptr<FunctionChannel> function_channel_;       // of horovod.run()
  std::optional<Adoption> adoption_;                        // while it takes over
  std::vector<int32_t> interrupts_;                         // for a driver that takes over
  std::optional<std::tuple<size_t, bool, JobPhase>> left_;  // what the record that was left says
  std::string left_state_;                                  // the same of an elastic job
  size_t channels_known_ = 0;                               // hosts whose channels can be made
  DriverStatusListener status_listener_{parts_.io, [this] { return CountsOf(parts_.state); }};
};

Driver::Driver(DriverOptions options, ChannelFactory& channels, const HostWatchMaker& watch_hosts,
               LauncherMaker make_launcher)
    : parts_(std::move(options), events_, SteadyNow()),
      channels_(channels),
      make_launcher_(std::move(make_launcher)) {
  if (watch_hosts) host_watch_ = watch_hosts(parts_.io);
  const DriverOptions& job = parts_.options;
  channels_known_ = job.plan.hosts.size();
  if (job.taken_over) {
    adoption_.emplace(*job.taken_over);
    interrupts_ = job.taken_over->interrupts;
    if (host_watch_) GoOnWithHosts(*job.taken_over);
  }
  if (host_watch_) return;
  for (uint32_t host = 0; host < job.plan.hosts.size(); ++host) {
    AddAgent(host);
    if (!job.hosts[host].remote) parts_.state.clocks[host] = HostClock::Ours();
  }
}

// The hosts of an elastic job, as its former hvdrun has left them.
void Driver::GoOnWithHosts(const TakeoverRecord& record) {
  if (!DecodeJobState(record.job, parts_.state, SteadyNow()) ||
      record.hosts.size() > parts_.state.elastic.hosts.size())
    throw std::runtime_error("the hvdrun that was killed has left a record that cannot be read");
  std::vector<bool> outlives(parts_.state.elastic.hosts.size());
  for (uint32_t host = 0; host < outlives.size(); ++host) {
    parts_.AddHost(parts_.state.elastic.hosts[host].listing);
    AddAgent(host);
    if (host >= record.hosts.size()) continue;
    outlives[host] = record.hosts[host].has_rank != 0;
    parts_.free_ports[host] = record.hosts[host].free_port;
  }
  ForgetHosts(parts_.state, outlives);
}

// The hosts of an elastic job, now and whenever they change.
void Driver::WatchHosts() {
  if (host_watch_ == nullptr) return;
  host_watch_->Start([this](const HostAnswer& answer) {
    events_.Push(HostsListed{answer.hosts, answer.trouble, answer.hopeless});
  });
}

// Each of its processes waits for the agent of its host, so the messages need not have arrived.
void Driver::RunLauncher() {
  for (uint32_t host : parts_.options.plan.UsedHosts()) parts_.agents.Send(host, AwaitPlaces{});
  std::vector<uint32_t> cpus;
  for (const AgentFacts& facts : parts_.facts) cpus.push_back(facts.cpus);
  auto made = make_launcher_(parts_.io, parts_.options.plan, cpus,
                             [this](const LauncherEnd& end) { OnLauncherOver(end); });
  if (!made.ok()) {
    const LauncherEnded never{"was not started", made.status().message(), kUsageError};
    return events_.Push(never);
  }
  parts_.launcher = std::move(*made);
  parts_.log.Verbose("starting " + CommandText(parts_.launcher->command()));
  parts_.launcher->Start();
}

void Driver::OnLauncherOver(const LauncherEnd& end) {
  events_.Push(LauncherEnded{end.reason, end.words, end.exit_code, end.by_signal});
}

void Driver::AddAgent(uint32_t host) {
  const DriverOptions& job = parts_.options;
  if (host >= channels_known_) {
    const std::vector<HostSlots> together = HostsFrom(host, parts_.state.elastic);
    channels_.Add(together);
    channels_known_ = host + together.size();
  }
  const uint64_t id = ParseJobId(job.job_id).value_or(0);
  parts_.agents.Add(std::make_unique<AgentConnection>(
      *this, host, id + host, channels_.Make(parts_.io, host), HeartbeatOf(job, host)));
}

// The path was checked before the job was begun.
void Driver::OpenTimeline() {
  const Settings& settings = parts_.options.settings;
  if (!HasTimelineFile(settings)) return;
  parts_.timeline = parts_.OpenTimelineFile(
      settings.timeline_filename, static_cast<uint64_t>(settings.timeline_max_bytes),
      static_cast<uint64_t>(settings.timeline_steps), SteadyNow());
}

int Driver::Run() {
  OpenTimeline();
  Begin();
  parts_.io.run();
  return Finish();
}

void Driver::Begin() {
  signals_.Open();
  if (Status open = status_listener_.Open(parts_.options.job_id); !open.ok())
    parts_.log.Verbose("hvdrun ps sees the ranks on this machine only: " + open.message());
  OpenLive();
  OpenFunctionChannel();
  const std::string plan = host_watch_ ? "elastic" : PlanText(parts_.options.plan);
  parts_.log.Info("job " + parts_.options.job_id + ": " + plan);
  if (adoption_) return TakeOverAgents();
  events_.Push(Begun{});
  parts_.agents.Open();
  WatchHosts();
  if (host_watch_) WatchOwnRun();
  ScheduleTick();
  if (parts_.log.level() <= LogLevel::kInfo || host_watch_)
    return;  // the log shows more than a progress line
  const bool remote_hosts = parts_.state.options.prove_addresses;
  parts_.screen.BeginProgress(remote_hosts ? [this] { return parts_.state.stages.Counts(); }
                                           : Screen::HostCounts());
}

// Those of other hosts are gone.
void Driver::TakeOverAgents() {
  const TakeoverRecord& record = *parts_.options.taken_over;
  sigset_t held;  // since the standby was made
  ::sigemptyset(&held);
  for (int signal : {SIGINT, SIGTERM}) ::sigaddset(&held, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
  parts_.screen.Print(
      Format("hvdrun (pid {}) was killed; another one, pid {}, goes on with the job", record.pid,
             ::getpid()));
  const TakeOver printed = parts_.screen.printed(static_cast<uint32_t>(parts_.state.ranks.size()));
  const auto grace = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(parts_.options.successor_grace_seconds));
  for (uint32_t host = 0; host < record.hosts.size(); ++host) {
    if (record.hosts[host].has_rank != 0)
      parts_.agents[host].OpenAsSuccessor(record.hosts[host].there, record.key, printed, grace);
  }
  ScheduleTick();
  if (adoption_->complete()) Adopt();  // of a job that has no hosts yet
}

void Driver::OnAdopted(uint32_t host, ToDriver message) {
  if (auto* snapshot = std::get_if<HostSnapshot>(&message)) {
    if (Status own = CheckSnapshot(parts_.state.plan, host, *snapshot); !own.ok())
      return parts_.agents[host].Break(own.message());
    adoption_->Take(host, std::move(*snapshot));
  } else {
    adoption_->Take(host, std::move(message));
  }
  if (adoption_->complete()) Adopt();
}

// All agents have answered, or were waited for. A host that is gone although all workers had ended
// has only lost its answer.
void Driver::Adopt() {
  Adoption adoption = *std::exchange(adoption_, std::nullopt);
  const TakeoverRecord& record = *parts_.options.taken_over;
  if (host_watch_) return AdoptElastic(std::move(adoption));
  actions_.UseRunning();
  TakeoverRecord known = record;
  known.interrupts = interrupts_;
  for (const JobEvent& event : AdoptionEvents(known, adoption.snapshots())) events_.Push(event);
  for (const auto& [host, reason] : adoption.lost()) {
    if (reason.empty() || record.is_over != 0) {
      events_.Push(AgentFinished{host});
    } else {
      events_.Push(AgentLost{host, reason});
    }
  }
  for (auto& [host, message] : adoption.PopMessages())
    messages_.Receive(host, message, SteadyNow());
  ScheduleTick();
}

void Driver::AdoptElastic(Adoption adoption) {
  const TakeoverRecord& record = *parts_.options.taken_over;
  HostSnapshots snapshots = adoption.snapshots();
  snapshots.resize(parts_.state.elastic.hosts.size());
  std::set<uint32_t> with_part;
  for (uint32_t host = 0; host < snapshots.size(); ++host) {
    if (snapshots[host] && snapshots[host]->started != 0) with_part.insert(host);
    if (snapshots[host] && parts_.options.hosts[host].remote) parts_.clock_schedule.Begin(host);
  }
  actions_.UseRunning(with_part);
  const std::vector<JobEvent> missed = MissedEvents(parts_.state, snapshots);
  for (const JobAction& action : UnfinishedActions(parts_.state, snapshots, SteadyNow()))
    Execute(action);
  for (const JobEvent& event : missed) events_.Push(event);
  for (const auto& [host, reason] : adoption.lost()) {
    if (reason.empty() || record.is_over != 0 || parts_.state.elastic.hosts[host].gone) {
      events_.Push(AgentFinished{host});
    } else {
      events_.Push(AgentLost{host, reason});
    }
  }
  for (auto& [host, message] : adoption.PopMessages())
    messages_.Receive(host, message, SteadyNow());
  for (size_t at = record.interrupts.size(); at < interrupts_.size(); ++at)
    events_.Push(Interrupted{interrupts_[at]});
  events_.Push(hvd::Tick{});
  WatchHosts();
  WatchOwnRun();
  ScheduleTick();
}

// Before anything is done about what was decided: the next hvdrun does what this one did not.
void Driver::LeaveElasticRecord(const JobEvent& event, const Decision& decision) {
  const JobState& state = parts_.state;
  if (parts_.options.successor_link < 0 || adoption_) return;
  if (IsKnownToAgents(event) && decision.actions.empty()) return;
  std::string now = EncodeJobState(state);
  if (now == left_state_) return;
  TakeoverRecord record = BeginRecord();
  record.job = left_state_ = std::move(now);
  for (uint32_t host = 0; host < parts_.agents.count(); ++host) {
    const AgentPath& there = parts_.agents[host].there();
    const bool outlives = state.host_open[host] && !there.hvdrun.empty();
    record.hosts.push_back(
        {there, static_cast<uint8_t>(outlives ? 1 : 0), {}, parts_.free_ports[host]});
  }
  Leave(record);
}

// When something has changed that agents do not know.
void Driver::LeaveRecordIfNews() {
  const DriverOptions& options = parts_.options;
  const JobState& state = parts_.state;
  if (options.successor_link < 0 || adoption_ || !parts_.tree.formed() || !state.blocked.empty() ||
      state.phase == JobPhase::kOpening)
    return;
  const std::tuple now{interrupts_.size(), state.failure.has_value(), state.phase};
  if (std::exchange(left_, now) == now) return;
  TakeoverRecord record = BeginRecord();
  record.host_names = options.plan.hosts;
  record.ranks = options.plan.ranks;
  record.homogeneous = options.plan.homogeneous ? 1 : 0;
  for (uint32_t host = 0; host < options.plan.hosts.size(); ++host)
    record.hosts.push_back({parts_.agents[host].there(),
                            static_cast<uint8_t>(parts_.tree.Has(host) ? 1 : 0),
                            options.hosts[host].addresses, 0});
  if (state.failure) SetFailure(record, *state.failure);
  Leave(record);
}

// What is the same for all jobs.
TakeoverRecord Driver::BeginRecord() const {
  const DriverOptions& options = parts_.options;
  const JobState& state = parts_.state;
  TakeoverRecord record;
  record.pid = ::getpid();
  record.key = options.successor_key;
  record.begun_ns = NanosecondsOf(parts_.begun);
  record.master_address = options.master_address;
  record.master_port = options.master_port;
  record.interrupts = interrupts_;
  if (state.phase >= JobPhase::kFinishing) {
    record.is_over = 1;
    record.exit_code = ExitCode(state);
    record.report = LastOutput();
  }
  return record;
}

void Driver::Leave(const TakeoverRecord& record) {
  if (!LeaveRecord(parts_.options.successor_link, EncodeTakeoverRecord(record)))
    parts_.options.successor_link = -1;
}

// Metrics that cannot be served are refused before the job is begun, but for a port that somebody
// else takes in between.
void Driver::OpenLive() {
  if (Status open = parts_.live.Open(parts_.options.job_id); !open.ok())
    parts_.log.Verbose("hvdrun top and dump do not see this job: " + open.message());
  const Settings& settings = parts_.options.settings;
  if (settings.metrics_port < 0) return;
  const auto port = static_cast<uint16_t>(settings.metrics_port);
  if (Status open = parts_.live.OpenMetrics(settings.metrics_bind, port); !open.ok())
    return parts_.screen.Print(open.message() + "; the job goes on without it");
  const std::string url = "http://" + parts_.live.metrics_address() + "/metrics";
  if (port == 0) parts_.screen.Print("metrics are at " + url);
}

void Driver::OpenFunctionChannel() {
  if (parts_.options.function.empty()) return;
  function_channel_ = std::make_unique<FunctionChannel>(
      parts_.io, parts_.options.settings.function_channel,
      [this](uint32_t host, uint64_t bytes) { parts_.agents[host].ReturnCredit(bytes); },
      [this] {
        parts_.screen.Print("the process that called horovod.run() is gone, so its job ends");
        events_.Push(Interrupted{SIGTERM});
      });
}

void Driver::CloseTimelines() {
  const bool dumped = parts_.failure_dump != nullptr;
  for (auto* timeline : {&parts_.timeline, &parts_.failure_dump}) {
    if (*timeline == nullptr) continue;
    if (Status written = (*timeline)->Close(); !written.ok())
      parts_.screen.Print(written.message());
    timeline->reset();
  }
  if (dumped)
    parts_.screen.Print("the last events of the ranks are in " +
                        parts_.options.settings.dump_on_failure);
}

int Driver::Finish() {
  const JobState& state = parts_.state;
  parts_.live.Close();
  parts_.stdin_reader.reset();
  CloseTimelines();
  host_watch_.reset();
  signals_.Close();  // a job that waits for its reader can be interrupted
  const std::optional<TakeoverRecord>& record = parts_.options.taken_over;
  const bool was_over = record && record->is_over != 0;
  const std::string last =
      was_over ? record->report : LastOutput() + WriteErrorFileIfFailed(state, parts_.options);
  const auto patience = EndedByItself(state) ? kPatience : kOutputLimit;
  if (function_channel_) function_channel_->Finish(patience);
  parts_.screen.Finish(last, patience);
  const int code = was_over ? record->exit_code : ExitCode(state);
  return code != 0 ? code : parts_.screen.exit_code();
}

std::string Driver::LastOutput() const {
  const std::string recorded =
      parts_.state.failure ? parts_.flights.LinesOfFailure(parts_.options.plan.size()) : "";
  return Report(parts_.state, PlaceOfTraceback(parts_)) + recorded + Hint(parts_) +
         CodeLine(parts_.state);
}

void Driver::WatchOwnRun() {
  LookAtOwnRun();
  ScheduleDeadline();
  run_timer_.expires_after(RunWatch::kEvery);
  run_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) WatchOwnRun();
  });
}

// Before anything is decided: limits of what hvdrun waits for stood still while it did.
void Driver::LookAtOwnRun() {
  const Duration away = run_watch_.Look(SteadyNow());
  // Ctrl-Z is told, and accounts for itself.
  if (away > Duration{} && !parts_.state.paused_at) NoteHeldUp(parts_.state, away);
}

void Driver::Execute(const JobAction& action) {
  if (std::holds_alternative<StartLauncher>(action)) RunLauncher();
  if (const auto* open = std::get_if<OpenHost>(&action)) {
    parts_.AddHost(open->listing);
    AddAgent(open->host);
  }
  actions_.Execute(action, SteadyNow());
}

void Driver::Handle(const JobEvent& event) {
  if (host_watch_) LookAtOwnRun();
  if (parts_.stock && IsFailedEnd(event)) parts_.stock->Break();
  Decision decision = Step(parts_.state, event, SteadyNow());
  if (!decision.reason.empty())
    parts_.log.Print(decision.detail ? LogLevel::kDebug : LogLevel::kInfo, decision.reason);
  if (host_watch_) LeaveElasticRecord(event, decision);
  for (const JobAction& action : decision.actions) Execute(action);
  if (!host_watch_) LeaveRecordIfNews();
  if (parts_.state.phase == JobPhase::kOpening) parts_.screen.HostsChanged();
  ScheduleTickIfMoved();
  ScheduleDeadline();
  StopWhenCleared();
}

void Driver::OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) {
  const std::vector<Placement>& workers = parts_.state.plan.ranks;
  if (output.rank >= workers.size() || workers[output.rank].host != host)
    return parts_.agents[host].Break("its agent reported an unknown rank");
  if (output.stream == OutputStream::kResult) {
    if (!function_channel_)
      return parts_.agents[host].Break("its agent sent a result, but no function is run");
    return function_channel_->Pass({host, message_bytes}, output.rank, parts_.RankOf(output.rank),
                                   output.bytes);
  }
  WorkerOutputView shown = output;
  shown.rank = parts_.RankOf(output.rank);
  parts_.screen.Print(host, output.rank, shown, message_bytes);
}

void Driver::OnHostAway(uint32_t host, const std::string& reason) {
  const Duration grace = HeartbeatOf(parts_.options, host).grace;
  parts_.screen.Print(AwayText(parts_.NameOf(host), reason, grace));
  ScheduleTick();  // the next tick is earlier
}

void Driver::OnHostEnd(uint32_t host, const std::string& reason) {
  if (parts_.agents[host].left_alone()) CleanUp(host);
  parts_.TellUnlessEnding(parts_.forwarded_signals.HostGone(host, SteadyNow()));
  if (parts_.tree.Has(host)) parts_.relay.HostGone(parts_.tree.NumberOf(host));
  if (adoption_) {
    adoption_->Lose(host, reason);
    return adoption_->complete() ? Adopt() : void();
  }
  if (reason.empty()) return events_.Push(AgentFinished{host});
  events_.Push(AgentLost{host, reason});
}

// Runs beside the end of the job: the other hosts do not wait for it.
void Driver::CleanUp(uint32_t host) {
  std::unique_ptr<HostChannel> channel = parts_.agents[host].MakeSideCommand(SideCommand::kClear);
  if (!channel) return;
  parts_.cleanups.Start(std::move(channel), SteadyNow(), [this, host](const std::string& reason) {
    if (reason.empty()) {
      parts_.log.VerboseHost(host, "what was left of the job there is ended");
    } else {
      parts_.screen.Print(UnclearedText(parts_.NameOf(host), reason));
    }
    StopWhenCleared();
  });
  ScheduleTick();
}

void Driver::StopWhenCleared() {
  const bool launcher_over = parts_.launcher == nullptr || parts_.launcher->over();
  if (parts_.job_over && parts_.cleanups.all_over() && launcher_over) parts_.io.stop();
}

void Driver::OnSignal(int signal) {
  switch (ActionFor(signal, parts_.job_over)) {
    case SignalAction::kLeave: return parts_.io.stop();
    case SignalAction::kInterrupt:
      interrupts_.push_back(signal);
      if (adoption_) return;  // it goes on with what it was asked
      return events_.Push(Interrupted{signal});
    case SignalAction::kForward: return parts_.ForwardToRanks(signal);
    case SignalAction::kNothing: return;
    case SignalAction::kResume: return events_.Push(Resumed{});
    case SignalAction::kPause: events_.Push(Paused{}); return JobSignals::StopSelf();
  }
}

void Driver::ScheduleDeadline() {
  std::optional<TimePoint> next = NextTick(parts_.state);
  if (!next) {
    deadline_timer_.cancel();
    return;
  }
  deadline_timer_.expires_at(*next);
  deadline_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) events_.Push(hvd::Tick{});
  });
}

// The earliest tick of the parts.
void Driver::ScheduleTick() {
  tick_timer_.expires_at(std::min({parts_.agents.NextTick(), parts_.cleanups.NextTick(),
                                   parts_.tree.NextTick(), parts_.troubles.NextTick(SteadyNow()),
                                   parts_.stalls.NextTick(), parts_.flights.NextTick()}));
  tick_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    Tick(SteadyNow());
    ScheduleTick();
  });
}

void Driver::Tick(TimePoint now) {
  parts_.agents.Tick();
  for (uint32_t host = 0; host < parts_.agents.count(); ++host) messages_.AskTimeIfDue(host, now);
  const auto heard = [this](uint32_t rank) {
    return parts_.agents[parts_.options.plan.ranks[rank].host].heard();
  };
  if (std::optional<SilentRoute> broken = parts_.troubles.TakeBroken(now, heard))
    events_.Push(*broken);
  if (std::optional<StallExplained> stall = parts_.stalls.Result(parts_.options.plan, now))
    events_.Push(*stall);
  messages_.TellScriptStall(now);
  parts_.cleanups.Tick(now);
  for (const auto& [host, reason] : parts_.tree.TakeOverdue(now)) parts_.agents[host].Break(reason);
}

}  // namespace

bool DriverOptions::several_machines() const {
  const std::vector<uint32_t> used = plan.UsedHosts();
  bool remote =
      std::any_of(used.begin(), used.end(), [&](uint32_t host) { return hosts[host].remote; });
  return remote && used.size() > 1;
}

int RunJob(DriverOptions options, ChannelFactory& channels, const HostWatchMaker& watch_hosts,
           const LauncherMaker& make_launcher) {
  ::signal(SIGPIPE, SIG_IGN);
  if (const std::optional<TakeoverRecord>& record = options.taken_over) {
    options.master_address = record->master_address;
    options.master_port = record->master_port;
    if (!options.policy.finds_hosts) UseHostsOf(*record, options);
  }
  try {
    Driver driver(std::move(options), channels, watch_hosts, make_launcher);
    return driver.Run();
  } catch (const std::exception& failure) {  // out of descriptors, threads or memory
    WriteAll(STDERR_FILENO, std::string("hvdrun: it cannot go on, so all ranks were ended: ") +
                                MeaningOf(failure) + "\n");
    return kCannotGoOn;
  }
}

}  // namespace hvd
