#include "launcher/driver.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <charconv>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "configs/message_text.h"
#include "launcher/error_file.h"
#include "launcher/job.h"
#include "launcher/job_id.h"
#include "launcher/key_values.h"
#include "launcher/messages.h"
#include "launcher/output.h"
#include "launcher/reach_proof.h"
#include "launcher/report.h"
#include "launcher/screen.h"
#include "launcher/start_job.h"
#include "launcher/stdin_reader.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"

namespace hvd {
namespace {

Duration Seconds(double seconds) {
  constexpr double kLongest = 1e9;  // "for ever", without overflow
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

constexpr int kCannotGoOn = 1;
// How much of stdin may be on its way to the workers.
constexpr uint64_t kInputWindow = 256 * 1024;

// Tests do not want to wait as long.
int NumberFromTest(const char* variable, int usual) {
  std::string text = GetEnv(variable).value_or("");
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value > 0 ? value : usual;
}

JobOptions JobOptionsOf(const DriverOptions& driver) {
  const Settings& settings = driver.settings;
  JobOptions options;
  options.stages = driver.stage_limits;
  options.prove_addresses = driver.several_machines();
  options.terminate_grace = Seconds(settings.terminate_grace_seconds);
  options.start_timeout = Seconds(settings.start_timeout_seconds);
  options.timeout = Seconds(settings.timeout_seconds);
  auto usual_ms = std::chrono::duration_cast<std::chrono::milliseconds>(options.init_watch).count();
  options.init_watch = std::chrono::milliseconds(
      NumberFromTest("HVD_TEST_INIT_WATCH_MS", static_cast<int>(usual_ms)));
  return options;
}

// Nothing can be cut off on this machine: only an agent that is stopped is silent here, and it may be continued.
constexpr int kSilentSecondsHere = 30;

Heartbeat HeartbeatOf(const DriverOptions& options, uint32_t host) {
  Heartbeat heartbeat;
  int limit = kSilentSecondsHere;
  if (options.hosts[host].remote) {
    limit = std::max(1, static_cast<int>(options.settings.heartbeat_timeout_seconds));
    heartbeat.every = std::min<Duration>(heartbeat.every, std::chrono::milliseconds(limit * 200));
  }
  heartbeat.limit_seconds = NumberFromTest("HVD_TEST_SILENT_SECONDS", limit);
  return heartbeat;
}

class Driver final : public HostLineObserver {
 public:
  Driver(DriverOptions options, const WayMaker& make_way);

  int Run();

  void OnHostStage(uint32_t host, HostStage stage) override { Happens(HostEntered{host, stage}); }
  void OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) override;
  void OnMessage(uint32_t host, ToDriver message) override;
  void OnReadOver(uint32_t) override { screen_.Flush(); }
  void OnHostEnd(uint32_t host, const std::string& reason) override;

 private:
  void Happens(const JobEvent& event);
  void Verbose(const std::string& sentence);
  void WriteErrorFileIfFailed();

  // What agents say. All but these are events as they are.
  template <typename Event>
  void Hear(uint32_t, const Event& event) {
    Happens(event);
  }
  void Hear(uint32_t host, const AgentReady& ready);
  void Hear(uint32_t host, const ReachProven& proven);
  void Hear(uint32_t host, const AgentNote& note);
  void Hear(uint32_t host, const WorkerStarted& started);
  void Hear(uint32_t host, const RankJoined& joined);
  void Hear(uint32_t host, const InputTaken& taken);
  void Hear(uint32_t host, PutKey& put);
  void Hear(uint32_t host, const WantKey& want);
  void Hear(uint32_t, const WorkerOutput&) {}  // OnOutput has it
  void Hear(uint32_t, const AgentGone&) {}     // OnHostEnd follows

  // What the job wants done. All but these are messages to every agent.
  template <typename Message>
  void Do(const Message& message) {
    TellAll(message);
  }
  void Do(const ProveAddresses&);
  void Do(const StartWorkers&);
  void Do(const BeginEpoch& begin);
  void Do(const CutHost& cut) { hosts_[cut.host]->Cut(); }
  void Do(const CutChannels&);
  void Do(const TellUser& tell) { screen_.Say(tell.sentence); }
  void Do(const EndRun&) { io_.stop(); }
  void TellAll(const ToAgent& message);

  void ReadInput();
  void OnInput(std::string bytes);
  void HandleSignals();
  void WaitForSignals();
  void OnSignal(int signal);
  void ScheduleDeadline();
  void ScheduleHeartbeat();

  uint32_t host_count() const { return static_cast<uint32_t>(hosts_.size()); }
  const std::string& NameOf(uint32_t host) const { return options_.plan.hosts[host]; }

  DriverOptions options_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer deadline_timer_, heartbeat_timer_;
  JobState state_;
  KeyValues directory_;  // readers are hosts
  std::vector<std::unique_ptr<HostLine>> hosts_;
  std::vector<uint32_t> free_ports_;   // by host
  std::vector<uint64_t> input_taken_;  // by host, of those that read it; empty: nobody does
  uint64_t input_allowed_ = 0;
  // Last: their threads post to io_.
  Screen screen_;
  std::unique_ptr<StdinReader> input_;
};

Driver::Driver(DriverOptions options, const WayMaker& make_way)
    : options_(std::move(options)),
      signals_(io_),
      deadline_timer_(io_),
      heartbeat_timer_(io_),
      state_(options_.plan, JobOptionsOf(options_)),
      screen_(io_, options_.plan, options_.settings, options_.prefix,
              [this](uint32_t host, uint64_t bytes) { hosts_[host]->ReturnCredit(bytes); }) {
  uint64_t job = ParseJobId(options_.job_id).value_or(0);
  for (uint32_t host = 0; host < options_.plan.hosts.size(); ++host) {
    hosts_.push_back(std::make_unique<HostLine>(*this, host, job + host, make_way(io_, host),
                                                HeartbeatOf(options_, host)));
  }
}

int Driver::Run() {
  HandleSignals();
  Happens(Begun{});
  for (auto& host : hosts_) host->Open();
  ScheduleHeartbeat();
  if (!options_.settings.verbose) screen_.BeginProgress();  // that tells more
  io_.run();
  input_.reset();
  signals_.clear();  // whoever is stuck in a blocked screen can be interrupted
  screen_.Finish();
  WriteAll(STDERR_FILENO, Report(state_));
  WriteErrorFileIfFailed();
  return ExitCode(state_);
}

void Driver::WriteErrorFileIfFailed() {
  const std::string& path = options_.settings.error_file;
  if (path.empty() || !state_.failure) return;
  Status status = WriteErrorFile(path, ErrorJson(state_, options_.job_id, options_.command));
  if (!status.ok()) WriteAll(STDERR_FILENO, "hvdrun: " + status.message() + "\n");
}

void Driver::Verbose(const std::string& sentence) {
  if (options_.settings.verbose) screen_.Say(sentence);
}

// ---- events and actions

void Driver::Happens(const JobEvent& event) {
  Decision decision = Step(state_, event, SteadyNow());
  if (!decision.reason.empty()) Verbose(decision.reason);
  for (const JobAction& action : decision.actions)
    std::visit([this](const auto& a) { Do(a); }, action);
  ScheduleDeadline();
}

void Driver::OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) {
  const std::vector<Placement>& ranks = options_.plan.ranks;
  if (output.rank >= ranks.size() || ranks[output.rank].host != host)
    return hosts_[host]->Break("its agent speaks of a rank that it does not have");
  screen_.Print(host, output, message_bytes);
}

void Driver::OnMessage(uint32_t host, ToDriver message) {
  std::visit([&](auto& m) { Hear(host, m); }, message);
}

void Driver::OnHostEnd(uint32_t host, const std::string& reason) {
  if (reason.empty()) return Happens(AgentFinished{host});
  Happens(AgentLost{host, reason});
}

void Driver::Hear(uint32_t host, const AgentNote& note) {
  Verbose("host " + NameOf(host) + ": " + note.text);
}

void Driver::Hear(uint32_t, const WorkerStarted& started) {
  screen_.WorkerStarted();
  Happens(started);
}

void Driver::Hear(uint32_t, const RankJoined& joined) {
  screen_.RankJoined(joined.rank);
  Happens(joined);
}

void Driver::TellAll(const ToAgent& message) {
  for (auto& host : hosts_) host->Tell(message);
}

void Driver::Do(const CutChannels&) {
  for (auto& host : hosts_) host->Cut();
}

// ---- hosts that get ready

void Driver::Hear(uint32_t host, const AgentReady& ready) {
  Verbose("agent on host " + NameOf(host) + ": pid " + std::to_string(ready.pid) + ", warden " +
          std::to_string(ready.warden_pid) +
          "; nothing is left behind by means of: " + ready.means);
  if (ready.version != HVD_VERSION) {
    return hosts_[host]->Break("it has hvdrun " + Printable(ready.version) +
                               " and this is hvdrun " HVD_VERSION
                               "; install the same version there");
  }
  free_ports_.resize(hosts_.size());
  free_ports_[host] = ready.free_port;
  Happens(AgentIsReady{host});
}

void Driver::Do(const ProveAddresses&) {
  for (uint32_t host = 0; host < host_count(); ++host) {
    ProveReach question;
    question.job_key = options_.job_key;
    question.host = host;
    question.others = ProofPartners(host, host_count());
    for (uint32_t other : question.others) question.names.push_back(NameOf(other));
    question.interfaces = options_.interfaces;
    question.first_port = options_.first_port;
    question.last_port = options_.last_port;
    hosts_[host]->Tell(question);
  }
}

// Where the others reached a host is where its ranks will listen.
void Driver::Hear(uint32_t host, const ReachProven& proven) {
  std::vector<uint32_t> others = ProofPartners(host, host_count());
  for (size_t i = 0; i < std::min(others.size(), proven.addresses.size()); ++i) {
    const std::string& address = proven.addresses[i];
    std::vector<std::string>& known = options_.hosts[others[i]].addresses;
    if (address.empty() || std::find(known.begin(), known.end(), address) != known.end()) continue;
    known.push_back(address);
    Verbose("host " + NameOf(others[i]) + " is reached at " + address + " by " + NameOf(host));
  }
  Happens(HostProven{host, proven.trouble});
}

void Driver::Do(const StartWorkers&) {
  if (options_.several_machines()) {
    const std::vector<std::string>& first = options_.hosts[0].addresses;
    if (!first.empty()) options_.master_address = first[0];
    options_.master_port = free_ports_[0];
  }
  for (uint32_t host = 0; host < host_count(); ++host)
    hosts_[host]->Tell(StartJobFor(options_, host));
  ReadInput();
}

// ---- the epoch's directory

void Driver::Do(const BeginEpoch& begin) {
  directory_.Begin(begin.epoch);
  TellAll(begin);
}

void Driver::Hear(uint32_t, PutKey& put) {
  if (put.epoch != directory_.epoch()) return;
  KeyValue entry{put.epoch, put.key, std::move(put.value)};
  for (uint32_t host : directory_.Put(entry.key, entry.value)) hosts_[host]->Tell(entry);
}

void Driver::Hear(uint32_t host, const WantKey& want) {
  if (want.epoch != directory_.epoch()) return;
  if (const std::string* value = directory_.Find(want.key)) {
    hosts_[host]->Tell(KeyValue{want.epoch, want.key, *value});
  } else {
    directory_.Await(host, want.key);
  }
}

// ---- stdin

// Once the agents know who reads it: what came earlier would go nowhere. Rank 0 is on the first host: ranks are handed
// out host by host.
void Driver::ReadInput() {
  StdinTo to = StartJobFor(options_, 0).stdin_to;
  if (to == StdinTo::kNone) return;
  input_taken_.resize(to == StdinTo::kRank0 ? 1 : hosts_.size());
  input_allowed_ = kInputWindow;
  input_ = std::make_unique<StdinReader>(STDIN_FILENO, kInputWindow, [this](std::string bytes) {
    asio::post(io_, [this, bytes = std::move(bytes)]() mutable { OnInput(std::move(bytes)); });
  });
}

void Driver::OnInput(std::string bytes) {
  screen_.EndProgress();  // somebody types into this line
  WorkerInput input{std::move(bytes)};
  for (size_t host = 0; host < input_taken_.size(); ++host) hosts_[host]->Tell(input);
}

// The slowest host says how much more is read.
void Driver::Hear(uint32_t host, const InputTaken& taken) {
  if (host >= input_taken_.size()) return;
  input_taken_[host] += taken.bytes;
  uint64_t allowed = *std::min_element(input_taken_.begin(), input_taken_.end()) + kInputWindow;
  if (allowed > input_allowed_) input_->Allow(allowed - std::exchange(input_allowed_, allowed));
}

// ---- signals and timers

// A signal that was ignored when hvdrun began (nohup) stays so.
void Driver::HandleSignals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT}) {
    struct sigaction inherited {};
    if (::sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
      signals_.add(signal);
  }
  WaitForSignals();
}

void Driver::WaitForSignals() {
  signals_.async_wait([this](const asio::error_code& error, int signal) {
    if (error) return;
    OnSignal(signal);
    WaitForSignals();
  });
}

void Driver::OnSignal(int signal) {
  if (signal == SIGCONT) return Happens(Resumed{});
  if (signal != SIGTSTP) return Happens(Interrupted{signal});
  Happens(Paused{});
  ::raise(SIGSTOP);  // here the shell takes over, until it says SIGCONT
}

void Driver::ScheduleDeadline() {
  std::optional<TimePoint> next = state_.NextTick();
  if (!next) {
    deadline_timer_.cancel();
    return;
  }
  deadline_timer_.expires_at(*next);
  deadline_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) Happens(Tick{});
  });
}

void Driver::ScheduleHeartbeat() {
  TimePoint next = TimePoint::max();
  for (const auto& host : hosts_) next = std::min(next, host->NextTick());
  heartbeat_timer_.expires_at(next);
  heartbeat_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    for (auto& host : hosts_) host->Tick();
    ScheduleHeartbeat();
  });
}

}  // namespace

bool DriverOptions::several_machines() const {
  bool remote =
      std::any_of(hosts.begin(), hosts.end(), [](const DriverHost& h) { return h.remote; });
  return remote && hosts.size() > 1;
}

int RunJob(DriverOptions options, const WayMaker& make_way) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    Driver driver(std::move(options), make_way);
    return driver.Run();
  } catch (const std::exception& failure) {  // out of descriptors, threads or memory
    WriteAll(STDERR_FILENO, std::string("hvdrun: it cannot go on, so all ranks were ended: ") +
                                failure.what() + "\n");
    return kCannotGoOn;
  }
}

}  // namespace hvd
