#include "launcher/driver/driver.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/driver/agent_messages.h"
#include "launcher/driver/agent_network.h"
#include "launcher/driver/driver_log.h"
#include "launcher/driver/event_queue.h"
#include "launcher/driver/external_launcher.h"
#include "launcher/driver/function_channel.h"
#include "launcher/driver/hang_watch.h"
#include "launcher/driver/host_readiness.h"
#include "launcher/driver/job_actions.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/driver/job_outline.h"
#include "launcher/driver/job_settings.h"
#include "launcher/driver/job_signals.h"
#include "launcher/driver/job_takeover.h"
#include "launcher/driver/last_output.h"
#include "launcher/driver/printed_reports.h"
#include "launcher/driver/rank_signals.h"
#include "launcher/driver/recordings.h"
#include "launcher/driver/remote_cleanup.h"
#include "launcher/driver/run_watch.h"
#include "launcher/driver/stock_worlds.h"
#include "launcher/driver/successor_record.h"
#include "launcher/driver/worker_starter.h"
#include "launcher/driver/worker_stdin.h"
#include "launcher/job/job.h"
#include "launcher/job/job_pause.h"
#include "launcher/job/report/job_result.h"
#include "launcher/output/output.h"
#include "launcher/output/screen.h"
#include "launcher/process/jobs/driver_status.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/uncaught.h"
#include "runtime/base/clock.h"

namespace hvd {
namespace {

constexpr int kCannotGoOn = 1;
// How long the screen may take to show the last output, for each stream. A pager is read when its
// user has the time, but a job that was asked to end does not wait for it.
constexpr auto kPatience = std::chrono::hours(24 * 365);
constexpr auto kOutputLimit = std::chrono::seconds(1);

// A worker has ended, and not with success.
bool IsFailedEnd(const JobEvent& event) {
  const auto* exited = std::get_if<WorkerExited>(&event);
  return exited != nullptr && !exited->end.ok();
}

// The hosts of a job of fixed size, which a driver that takes it over does not open again.
void UseHostsOf(const TakeoverRecord& record, DriverOptions& options) {
  options.plan = PlanOf(record);
  options.named_hosts.clear();  // the plan is final
  options.hosts.resize(record.hosts.size());
  for (size_t host = 0; host < record.hosts.size(); ++host)
    options.hosts[host].addresses = record.hosts[host].addresses;
}

// One job: what happens on its hosts and around hvdrun becomes an event; the state machine decides
// (Step); and JobActions carries that out.
class Driver final : public AgentConnectionObserver {
 public:
  Driver(DriverOptions options, ChannelFactory& channels, const HostWatchMaker& watch_hosts,
         const LauncherMaker& make_launcher);

  int Run();

  // What the connections to the agents bring.
  void OnHostStage(uint32_t host, HostStage stage) override {
    events_.Push(HostEntered{host, stage});
  }
  void OnHostTrouble(uint32_t host, const HostTrouble& trouble) override {
    events_.Push(HostTroubled{host, trouble});
  }
  void OnHostNote(uint32_t host, const std::string& text) override { log_.VerboseHost(host, text); }
  void OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) override;
  void OnMessage(uint32_t host, ToDriver message) override;
  void OnReadOver(uint32_t) override { screen_.Flush(); }
  void OnHostAway(uint32_t host, const std::string& reason) override;
  void OnHostBack(uint32_t host, Duration away) override {
    screen_.Print(BackText(NameOf(host), away));
  }
  void OnHvdrunSkipped(uint32_t host, const std::string& what) override {
    log_.HvdrunSkipped(host, what);
  }
  void OnHostEnd(uint32_t host, const std::string& reason) override;

 private:
  const std::string& NameOf(uint32_t host) const { return state_.plan.hosts[host]; }
  bool taking_over() const { return takeover_ && takeover_->pending(); }

  void Begin();
  void BeginElastic();
  void OpenFunctionChannel();
  void GoOnIfComplete();
  void OnSignal(int signal);
  void WatchOwnRun();
  void NoteOwnPause();
  void Handle(const JobEvent& event);
  void Execute(const JobAction& action);
  void ScheduleDeadline();
  void ScheduleTick();
  void ScheduleTickIfEarlier();
  void Tick(TimePoint now);
  void CleanUp(uint32_t host);
  void StopWhenCleared();
  int Finish();

  // What the job is, and what it decides.
  const DriverOptions options_;
  const TimePoint begun_;
  asio::io_context io_{1};
  EventQueue events_{[this](const JobEvent& event) { Handle(event); }};
  JobState state_;

  // Its hosts and agents.
  JobHosts hosts_;
  AgentNetwork network_;
  RemoteCleanups cleanups_;

  // What the user sees. From here on threads of these parts post to `io_`.
  PrintedReports printed_reports_;
  Screen screen_;
  DriverLog log_;
  Recordings recordings_;

  // Why ranks hang, and what reaches them beside the job's decisions.
  HangWatch hangs_;
  RankSignals rank_signals_;
  WorkerStdin stdin_;

  // Messages of agents in, actions of the job out.
  const std::unique_ptr<StockWorlds> stock_;  // null: the workers use our runtime
  HostReadiness readiness_;
  WorkerStarter starter_;
  ExternalLauncher launcher_;
  JobActions actions_;
  AgentMessages messages_;

  // The end of the job, and of this hvdrun before it.
  LastOutput last_output_;
  std::vector<int32_t> interrupts_;  // the signals that asked it to end
  SuccessorRecord record_;
  std::optional<JobTakeover> takeover_;  // of the job of an hvdrun that was killed

  // What happens around hvdrun.
  JobSignals signals_;
  asio::steady_timer deadline_timer_{io_}, tick_timer_{io_}, run_timer_{io_};
  RunWatch run_watch_;                                 // of an elastic job
  std::unique_ptr<HostWatch> host_watch_;              // of an elastic job
  std::unique_ptr<FunctionChannel> function_channel_;  // of horovod.run()
  DriverStatusListener status_listener_{io_, [this] { return CountsOf(state_); }};
};

Driver::Driver(DriverOptions options, ChannelFactory& channels, const HostWatchMaker& watch_hosts,
               const LauncherMaker& make_launcher)
    : options_(std::move(options)),
      begun_(options_.taken_over ? TimePoint(Duration(options_.taken_over->begun_ns))
                                 : SteadyNow()),
      state_(options_.plan, JobOptionsOf(options_), options_.named_hosts, options_.policy,
             ParseJobId(options_.job_id).value_or(0)),
      hosts_(options_),
      network_(io_, channels, *this, options_, state_, hosts_),
      printed_reports_(io_, state_, network_.agents(), screen_),
      screen_(
          io_, options_.plan, options_.policy.most_workers(), options_.settings, options_.prefix,
          [this](uint32_t host, uint64_t bytes) {
            network_.agents()[host].ReturnCredit(bytes);
            if (options_.printed) printed_reports_.SendSoon();
          },
          options_.printed),
      log_(LogLevelOf(options_.settings), state_.plan, screen_),
      recordings_(io_, options_, state_, begun_, network_.agents(), screen_),
      hangs_(options_.settings, state_, network_.agents(), events_),
      rank_signals_(state_, network_.agents(), events_, screen_),
      stdin_(io_, options_, network_.agents(), screen_),
      stock_(options_.settings.stock_horovod
                 ? std::make_unique<StockWorlds>(io_, options_, state_.plan, hosts_)
                 : nullptr),
      readiness_(options_, state_, hosts_, network_, events_, log_, stock_.get()),
      starter_(options_, state_, hosts_, network_, events_, screen_, log_, stdin_, stock_.get()),
      launcher_(io_, make_launcher, state_, network_.agents(), events_, log_),
      actions_(options_, state_, begun_, hosts_, network_, starter_, launcher_, recordings_,
               screen_, log_),
      messages_(state_, hosts_, events_, screen_, log_,
                {network_, readiness_, hangs_, recordings_, rank_signals_, stdin_}),
      last_output_(options_, state_, hosts_, hangs_, screen_),
      record_(options_, state_, begun_, interrupts_, hosts_, network_, last_output_),
      signals_(io_, [this](int signal) { OnSignal(signal); }) {
  if (watch_hosts) host_watch_ = watch_hosts(io_);
  for (uint32_t host = 0; host < hosts_.count(); ++host) {
    network_.AddConnection();
    if (!hosts_[host].remote) state_.clocks[host] = HostClock::Ours();
  }
  if (!options_.taken_over) return;
  interrupts_ = options_.taken_over->interrupts;
  takeover_.emplace(options_, state_, hosts_, network_, starter_, actions_, messages_, events_,
                    screen_);
}

int Driver::Run() {
  recordings_.OpenTimeline(SteadyNow());
  Begin();
  io_.run();
  return Finish();
}

// ---- the begin

void Driver::Begin() {
  signals_.Open();
  if (Status open = status_listener_.Open(options_.job_id); !open.ok())
    log_.Verbose("hvdrun ps sees the ranks on this machine only: " + open.message());
  recordings_.OpenLive(log_);
  OpenFunctionChannel();
  const std::string plan = host_watch_ ? "elastic" : PlanText(options_.plan);
  log_.Info("job " + options_.job_id + ": " + plan);
  if (takeover_) {
    takeover_->Open();
    ScheduleTick();
    return GoOnIfComplete();  // a job may have no hosts yet
  }
  events_.Push(Begun{});
  network_.agents().Open();
  if (host_watch_) BeginElastic();
  ScheduleTick();
  if (log_.level() <= LogLevel::kInfo || host_watch_)
    return;  // the log shows more than a progress line
  const bool remote_hosts = state_.options.prove_addresses;
  screen_.BeginProgress(remote_hosts ? [this] { return state_.stages.Counts(); }
                                     : Screen::HostCounts());
}

// Its hosts come now and whenever they change.
void Driver::BeginElastic() {
  host_watch_->Start([this](const HostAnswer& answer) {
    events_.Push(HostsListed{answer.hosts, answer.trouble, answer.hopeless});
  });
  WatchOwnRun();
}

void Driver::OpenFunctionChannel() {
  if (options_.function.empty()) return;
  function_channel_ = std::make_unique<FunctionChannel>(
      io_, options_.settings.function_channel,
      [this](uint32_t host, uint64_t bytes) { network_.agents()[host].ReturnCredit(bytes); },
      [this] {
        screen_.Print("the process that called horovod.run() is gone, so its job ends");
        events_.Push(Interrupted{SIGTERM});
      });
}

// Once all agents of a job that is taken over have answered.
void Driver::GoOnIfComplete() {
  if (!takeover_->complete()) return;
  takeover_->GoOn(interrupts_);
  if (host_watch_) BeginElastic();
  ScheduleTick();
}

// ---- what comes in

void Driver::OnMessage(uint32_t host, ToDriver message) {
  if (taking_over()) {
    takeover_->Handle(host, std::move(message));
    return GoOnIfComplete();
  }
  messages_.Receive(host, message, SteadyNow());
  ScheduleTickIfEarlier();
}

void Driver::OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) {
  const std::vector<Placement>& workers = state_.plan.ranks;
  if (output.rank >= workers.size() || workers[output.rank].host != host)
    return network_.agents()[host].Break("its agent reported an unknown rank");
  const uint32_t rank = state_.ranks[output.rank].rank;
  if (output.stream == OutputStream::kResult) {
    if (!function_channel_)
      return network_.agents()[host].Break("its agent sent a result, but no function is run");
    return function_channel_->Pass({host, message_bytes}, output.rank, rank, output.bytes);
  }
  WorkerOutputView shown = output;
  shown.rank = rank;
  screen_.Print(host, output.rank, shown, message_bytes);
}

void Driver::OnHostAway(uint32_t host, const std::string& reason) {
  const Duration grace = HeartbeatOf(options_.settings, hosts_[host].remote).grace;
  screen_.Print(AwayText(NameOf(host), reason, grace));
  ScheduleTick();  // the next tick is earlier
}

void Driver::OnHostEnd(uint32_t host, const std::string& reason) {
  if (network_.agents()[host].left_alone()) CleanUp(host);
  rank_signals_.HandleGone(host, SteadyNow());
  network_.HandleGone(host);
  if (taking_over()) {
    takeover_->HandleLost(host, reason);
    return GoOnIfComplete();
  }
  if (reason.empty()) return events_.Push(AgentFinished{host});
  events_.Push(AgentLost{host, reason});
}

void Driver::OnSignal(int signal) {
  switch (ActionFor(signal, actions_.job_over())) {
    case SignalAction::kLeave: return io_.stop();
    case SignalAction::kInterrupt:
      interrupts_.push_back(signal);
      if (taking_over()) return;  // it goes on with what it was asked
      return events_.Push(Interrupted{signal});
    case SignalAction::kForward: return rank_signals_.Forward(signal);
    case SignalAction::kNothing: return;
    case SignalAction::kResume: return events_.Push(Resumed{});
    case SignalAction::kPause: events_.Push(Paused{}); return JobSignals::StopSelf();
  }
}

void Driver::WatchOwnRun() {
  NoteOwnPause();
  ScheduleDeadline();
  run_timer_.expires_after(RunWatch::kEvery);
  run_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) WatchOwnRun();
  });
}

// Before anything is decided: no limit counts the time for which hvdrun was stopped.
void Driver::NoteOwnPause() {
  const Duration away = run_watch_.Look(SteadyNow());
  // Ctrl-Z is an event of its own, and accounts for itself.
  if (away > Duration{} && !state_.paused_at) NoteHeldUp(state_, away);
}

// ---- the job decides

void Driver::Handle(const JobEvent& event) {
  if (host_watch_) NoteOwnPause();
  if (stock_ && IsFailedEnd(event)) stock_->Break();
  const Decision decision = Step(state_, event, SteadyNow());
  if (!decision.reason.empty())
    log_.Print(decision.detail ? LogLevel::kDebug : LogLevel::kInfo, decision.reason);
  if (host_watch_ && !taking_over()) record_.LeaveState(event, decision);
  for (const JobAction& action : decision.actions) Execute(action);
  if (!host_watch_ && !taking_over()) record_.LeaveChanges();
  if (state_.phase == JobPhase::kOpening) screen_.HostsChanged();
  ScheduleTickIfEarlier();
  ScheduleDeadline();
  StopWhenCleared();
}

void Driver::Execute(const JobAction& action) {
  actions_.Execute(action, SteadyNow());
  if (std::holds_alternative<OpenHost>(action))
    ScheduleTick();  // its first heartbeat is due earlier
}

// ---- time

void Driver::ScheduleDeadline() {
  std::optional<TimePoint> next = NextTick(state_);
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
  tick_timer_.expires_at(
      std::min({network_.NextTick(), cleanups_.NextTick(), hangs_.NextTick(SteadyNow())}));
  tick_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    Tick(SteadyNow());
    ScheduleTick();
  });
}

// After messages, which do not change when the agents' own ticks are due.
void Driver::ScheduleTickIfEarlier() {
  const TimePoint next = std::min(network_.tree().NextTick(), hangs_.NextTick(SteadyNow()));
  if (next < tick_timer_.expiry()) ScheduleTick();
}

void Driver::Tick(TimePoint now) {
  network_.Tick(now);
  hangs_.Tick(now);
  cleanups_.Tick(now);
  network_.BreakOverdue(now);
}

// ---- the end

// Runs beside the end of the job: the other hosts do not wait for it.
void Driver::CleanUp(uint32_t host) {
  std::unique_ptr<HostChannel> channel =
      network_.agents()[host].MakeSideCommand(SideCommand::kClear);
  if (!channel) return;
  cleanups_.Start(std::move(channel), SteadyNow(), [this, host](const std::string& reason) {
    if (reason.empty()) {
      log_.VerboseHost(host, "what was left of the job there is ended");
    } else {
      screen_.Print(UnclearedText(NameOf(host), reason));
    }
    StopWhenCleared();
  });
  ScheduleTick();
}

void Driver::StopWhenCleared() {
  if (actions_.job_over() && cleanups_.all_over() && launcher_.over()) io_.stop();
}

int Driver::Finish() {
  recordings_.CloseLive();
  stdin_.Stop();
  recordings_.CloseFiles();
  host_watch_.reset();
  signals_.Close();  // a job that waits for its reader can be interrupted
  const std::optional<TakeoverRecord>& record = options_.taken_over;
  const bool was_over = record && record->is_over != 0;
  const std::string last =
      was_over ? record->report : last_output_.Text() + last_output_.WriteErrorFileIfFailed();
  const auto patience = EndedByItself(state_) ? kPatience : kOutputLimit;
  if (function_channel_) function_channel_->Finish(patience);
  screen_.Finish(last, patience);
  const int code = was_over ? record->exit_code : ExitCode(state_);
  return code != 0 ? code : screen_.exit_code();
}

}  // namespace

int RunJob(DriverOptions options, ChannelFactory& channels, const HostWatchMaker& watch_hosts,
           const LauncherMaker& make_launcher) {
  ::signal(SIGPIPE, SIG_IGN);
  if (const std::optional<TakeoverRecord>& record = options.taken_over) {
    options.master = {record->master_address, record->master_port};
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
