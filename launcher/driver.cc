#include "launcher/driver.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "configs/message_text.h"
#include "launcher/error_file.h"
#include "launcher/fold.h"
#include "launcher/job.h"
#include "launcher/job_id.h"
#include "launcher/key_values.h"
#include "launcher/lines.h"
#include "launcher/messages.h"
#include "launcher/output.h"
#include "launcher/output_files.h"
#include "launcher/preamble.h"
#include "launcher/progress.h"
#include "launcher/progress_throttle.h"
#include "launcher/reach_proof.h"
#include "launcher/report.h"
#include "launcher/start_job.h"
#include "launcher/stdin_reader.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/net/stream.h"

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

// An agent speaks at least once per heartbeat; one that is silent for the limit is lost.
struct Heartbeat {
  Duration every = std::chrono::seconds(2);
  int limit_seconds = 0;
};

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

class Driver;

// One host as the driver sees it: a channel and the stream in it.
class HostLine final : public ChannelObserver {
 public:
  HostLine(Driver& driver, uint32_t host, uint64_t job, HostWay way, Heartbeat heartbeat);

  void Open();
  void Tell(const ToAgent& message);
  void ReturnCredit(size_t count);
  void Tick();
  TimePoint NextTick() const { return std::min(stream_.NextTick(), next_look_); }
  void Cut() { channel_->Kill(); }
  // Gives the host up, with a reason of our own.
  void Break(const std::string& reason);

  void OnStage(ChannelStage stage) override;
  void OnBytes(std::string_view bytes) override;
  void OnWritable() override { Flush(); }
  void OnEnd(const ChannelEnd& end) override;

 private:
  void Flush();

  Driver& driver_;
  uint32_t host_;
  Stream stream_;
  std::unique_ptr<HostChannel> channel_;
  Preamble preamble_;
  bool started_ = false;  // the agent has its part of the job
  bool gone_ = false;     // the agent said that it is done
  bool ended_ = false;
  int silent_looks_ = 0;
  TimePoint next_look_ = SteadyNow();
  Heartbeat heartbeat_;
  std::string broken_;  // why this side gave the stream up
};

class Driver {
 public:
  Driver(DriverOptions options, const WayMaker& make_way);

  int Run();
  void Happens(const JobEvent& event);
  void Print(uint32_t host, const WorkerOutputView& output, size_t message_bytes);
  void OnMessage(uint32_t host, ToDriver message);
  // After the messages that came at once: what they printed goes to the screen.
  void FlushOutput();

 private:
  void WriteErrorFileIfFailed();
  void Do(const JobAction& action);
  void OnReady(uint32_t host, const AgentReady& ready);
  void AskForProof(uint32_t host);
  void OnProven(uint32_t host, const ReachProven& proven);
  void StartAll();
  void TellAll(const ToAgent& message);
  void HandleSignals();
  void WaitForSignals();
  void OnSignal(int signal);
  void ScheduleDeadline();
  void ScheduleHeartbeat();
  void Verbose(const std::string& text);
  void Say(const std::string& text);
  void ReadInput();
  void OnInput(std::string bytes);
  void BeginProgress();
  void ScheduleProgress();
  void EndProgress();
  enum class Sink { kScreen, kFiles };
  void Show(int stream, uint32_t rank, std::string_view bytes);
  void ShowHeld(TimePoint now);
  void ScheduleHeld();
  void OnWritten(Sink sink, const std::vector<OutputReceipt>& receipts);
  void SayFileFailure();
  void SayScreenFailure();
  void FinishOutput();
  void OnInputTaken(uint32_t host, uint64_t bytes);
  void OnPutKey(PutKey put);
  void OnWantKey(uint32_t host, const WantKey& want);

  DriverOptions options_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer deadline_timer_, heartbeat_timer_;
  JobState state_;
  KeyValues directory_;  // readers are hosts
  // What is printed goes through these three to text_, which FlushOutput hands to the writers.
  std::optional<ProgressThrottle> throttles_[2];
  std::optional<Folder> folders_[2];
  LinePrefixer prefixers_[2];
  std::string text_[2];
  OutputReceipt receipts_[2];
  asio::steady_timer held_timer_;
  std::optional<Progress> progress_;  // while the job starts
  asio::steady_timer progress_timer_;
  // Log bytes of a host that became text, in each of the two sinks.
  struct Written {
    uint64_t bytes[2] = {0, 0};
    uint64_t returned = 0;
  };
  std::vector<Written> written_;
  std::vector<std::unique_ptr<HostLine>> hosts_;
  std::vector<uint32_t> free_ports_;  // by host
  // Last: their threads post to io_ and use hosts_.
  std::unique_ptr<OutputWriter> writers_[2];
  std::unique_ptr<OutputFiles> files_;
  std::vector<uint64_t> input_taken_;  // by host, of those that read it; empty: nobody does
  uint64_t input_allowed_ = 0;
  std::unique_ptr<StdinReader> input_;
};

// ---- HostLine

StreamOptions StreamOptionsOf(uint64_t job, Duration heartbeat) {
  StreamOptions options;
  options.job = job;
  options.heartbeat = heartbeat;
  return options;
}

HostLine::HostLine(Driver& driver, uint32_t host, uint64_t job, HostWay way, Heartbeat heartbeat)
    : driver_(driver),
      host_(host),
      stream_(StreamOptionsOf(job, heartbeat.every)),
      channel_(std::move(way.channel)),
      preamble_(std::move(way.greeting)),
      heartbeat_(heartbeat) {}

void HostLine::Open() {
  stream_.Attach(SteadyNow());
  channel_->Open(*this);
  Flush();
}

void HostLine::Tell(const ToAgent& message) {
  if (ended_) return;
  if (const auto* begin = std::get_if<BeginEpoch>(&message)) stream_.set_epoch(begin->epoch);
  if (std::holds_alternative<StartJob>(message)) started_ = true;
  stream_.SendControl(EncodeToAgent(message));
  Flush();
}

void HostLine::ReturnCredit(size_t count) {
  stream_.ReturnCredit(count);
  Flush();
}

// Silence is counted in our own looks: when hvdrun itself was stopped for a while, what came meanwhile is read first.
void HostLine::Tick() {
  const TimePoint now = SteadyNow();
  if (now >= stream_.NextTick()) stream_.Tick(now);
  Flush();
  if (now < next_look_) return;
  next_look_ = now + heartbeat_.every;
  if (ended_ || !started_) return;  // before that the stages have their limits
  const Duration limit = std::chrono::seconds(heartbeat_.limit_seconds);
  const Duration silent = heartbeat_.every * ++silent_looks_;
  if (silent >= limit && silent < limit + heartbeat_.every)
    Break("its agent has been silent for " + std::to_string(heartbeat_.limit_seconds) + " s");
}

void HostLine::Flush() {
  while (!ended_) {
    std::string_view out = stream_.Outgoing();
    if (out.empty()) return;
    size_t wanted = out.size();
    size_t written = channel_->Write(out);
    stream_.Consume(written);
    if (written < wanted) return;
  }
}

void HostLine::OnStage(ChannelStage stage) {
  bool greets = stage == ChannelStage::kRunning && !preamble_.over();
  driver_.Happens(HostEntered{host_, greets ? HostStage::kExec : StageOf(stage)});
}

void HostLine::OnBytes(std::string_view bytes) {
  silent_looks_ = 0;
  if (!preamble_.over()) {
    std::optional<std::string> rest = preamble_.Take(bytes);
    if (!rest) {
      if (preamble_.too_long())
        Break("its shell says more than an agent would: " + preamble_.said());
      return;
    }
    driver_.Happens(HostEntered{host_, HostStage::kHello});
    return OnBytes(*rest);
  }
  Status status = stream_.Receive(bytes, SteadyNow());
  while (std::optional<StreamMessage> message = stream_.Next()) {
    if (std::optional<WorkerOutputView> output = PeekOutput(message->bytes)) {
      driver_.Print(host_, *output, message->bytes.size());
      continue;
    }
    Result<ToDriver> decoded = DecodeToDriver(message->bytes);
    if (!decoded.ok()) {
      status = decoded.status();
      break;
    }
    if (std::holds_alternative<AgentGone>(*decoded)) {
      gone_ = true;
      stream_.Acknowledge();
      Flush();
    }
    driver_.OnMessage(host_, std::move(*decoded));
  }
  driver_.FlushOutput();
  if (!status.ok()) return Break("its stream is damaged: " + status.message());
  Flush();
}

void HostLine::Break(const std::string& reason) {
  broken_ = reason;
  stream_.Detach();
  channel_->Close();
}

void HostLine::OnEnd(const ChannelEnd& end) {
  ended_ = true;
  if (gone_) return driver_.Happens(AgentFinished{host_});
  if (!stream_.greeted() && end.stage != ChannelStage::kClosed)
    driver_.Happens(HostEntered{host_, StageOf(end.stage)});  // it knows better where that was
  std::string reason = !broken_.empty() ? broken_ : end.reason;
  if (reason.empty()) reason = "its agent ended before the job";
  if (!preamble_.over() && !preamble_.said().empty())
    reason += " (its shell says: " + preamble_.said() + ")";
  driver_.Happens(AgentLost{host_, reason});
}

// ---- Driver

PrefixStyle StyleOf(const DriverOptions& options, int fd) {
  const Settings& settings = options.settings;
  PrefixStyle style;
  std::string terminal = GetEnv("TERM").value_or("dumb");
  bool wanted = ::isatty(fd) == 1 && terminal != "dumb" && GetEnv("NO_COLOR").value_or("").empty();
  style.color = settings.color == "always" || (settings.color != "never" && wanted);
  style.stamp = settings.prefix_timestamp;
  style.wall_seconds = WallSeconds;
  style.prefix = options.prefix;
  for (const Placement& place : options.plan.ranks)
    style.places.push_back({options.plan.hosts[place.host], place.local_rank});
  return style;
}

Driver::Driver(DriverOptions options, const WayMaker& make_way)
    : options_(std::move(options)),
      signals_(io_),
      deadline_timer_(io_),
      heartbeat_timer_(io_),
      state_(options_.plan, JobOptionsOf(options_)),
      prefixers_{LinePrefixer(OutputStream::kStdout, StyleOf(options_, STDOUT_FILENO)),
                 LinePrefixer(OutputStream::kStderr, StyleOf(options_, STDERR_FILENO))},
      held_timer_(io_),
      progress_timer_(io_),
      written_(options_.plan.hosts.size()) {
  uint64_t job = ParseJobId(options_.job_id).value_or(0);
  for (uint32_t host = 0; host < options_.plan.hosts.size(); ++host) {
    hosts_.push_back(std::make_unique<HostLine>(*this, host, job + host, make_way(io_, host),
                                                HeartbeatOf(options_, host)));
  }
  for (int i = 0; i < 2; ++i) {
    writers_[i] =
        std::make_unique<OutputWriter>(i + 1, [this](std::vector<OutputReceipt> receipts) {
          asio::post(
              io_, [this, receipts = std::move(receipts)] { OnWritten(Sink::kScreen, receipts); });
        });
    throttles_[i].emplace(
        options_.plan.size(), options_.settings.progress_rate,
        [this, i](uint32_t rank, std::string_view bytes) { Show(i, rank, bytes); });
    if (!options_.settings.fold) continue;
    folders_[i].emplace(options_.plan.size(),
                        [this, i](std::span<const uint32_t> ranks, std::string_view line) {
                          prefixers_[i].AddFolded(ranks, line, text_[i]);
                        });
  }
  if (const std::string& directory = options_.settings.output_filename; !directory.empty()) {
    files_ = std::make_unique<OutputFiles>(
        directory, options_.plan.size(), options_.settings.output_limit_bytes,
        [this](std::vector<OutputReceipt> receipts) {
          asio::post(io_,
                     [this, receipts = std::move(receipts)] { OnWritten(Sink::kFiles, receipts); });
        });
  }
}

int Driver::Run() {
  HandleSignals();
  Happens(Begun{});
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    hosts_[host]->Open();
  }
  ScheduleHeartbeat();
  ReadInput();
  BeginProgress();
  io_.run();
  input_.reset();
  signals_.clear();  // whoever is stuck in a blocked screen can be interrupted
  FinishOutput();
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

void Driver::OnMessage(uint32_t host, ToDriver message) {
  std::visit(
      [&](auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, WorkerOutput>) {
          // Seen by PeekOutput.
        } else if constexpr (std::is_same_v<M, AgentReady>) {
          Verbose("agent on host " + options_.plan.hosts[host] + ": pid " + std::to_string(m.pid) +
                  ", warden " + std::to_string(m.warden_pid) +
                  "; nothing is left behind by means of: " + m.means);
          OnReady(host, m);
        } else if constexpr (std::is_same_v<M, ReachProven>) {
          OnProven(host, m);
        } else if constexpr (std::is_same_v<M, AgentNote>) {
          Verbose("host " + options_.plan.hosts[host] + ": " + m.text);
        } else if constexpr (std::is_same_v<M, InputTaken>) {
          OnInputTaken(host, m.bytes);
        } else if constexpr (std::is_same_v<M, PutKey>) {
          OnPutKey(std::move(m));
        } else if constexpr (std::is_same_v<M, WantKey>) {
          OnWantKey(host, m);
        } else if constexpr (!std::is_same_v<M, AgentGone>) {
          if (progress_) {
            if constexpr (std::is_same_v<M, WorkerStarted>) progress_->WorkerStarted();
            if constexpr (std::is_same_v<M, RankJoined>) progress_->RankJoined(m.rank);
            ScheduleProgress();
          }
          Happens(m);
        }
      },
      message);
}

// `message_bytes` is what the output took of the stream's credit.
void Driver::Print(uint32_t host, const WorkerOutputView& output, size_t message_bytes) {
  int stream = output.stream == OutputStream::kStdout ? 0 : 1;
  OutputReceipt receipt{host, message_bytes};
  EndProgress();
  if (files_) files_->Write(output.rank, output.stream, std::string(output.bytes), receipt);
  receipts_[stream] = {host, receipts_[stream].log_bytes + message_bytes};
  throttles_[stream]->Add(output.rank, output.bytes, SteadyNow());
  ScheduleHeld();
}

void Driver::Show(int stream, uint32_t rank, std::string_view bytes) {
  if (folders_[stream]) return folders_[stream]->Add(rank, bytes, SteadyNow());
  prefixers_[stream].Add(rank, bytes, text_[stream]);
}

// What is held back counts as shown: it is bounded by itself.
void Driver::FlushOutput() {
  for (int i = 0; i < 2; ++i) {
    writers_[i]->Take(text_[i], receipts_[i]);
    receipts_[i] = {};
  }
}

void Driver::ShowHeld(TimePoint now) {
  for (int i = 0; i < 2; ++i) {
    throttles_[i]->Due(now);
    if (folders_[i]) folders_[i]->Due(now);
  }
  FlushOutput();
}

void Driver::ScheduleHeld() {
  std::optional<TimePoint> next;
  auto consider = [&](std::optional<TimePoint> due) {
    if (due && (!next || *due < *next)) next = due;
  };
  for (int i = 0; i < 2; ++i) {
    consider(throttles_[i]->deadline());
    if (folders_[i]) consider(folders_[i]->deadline());
  }
  if (!next || held_timer_.expiry() == *next) return;
  held_timer_.expires_at(*next);
  held_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    ShowHeld(SteadyNow());
    ScheduleHeld();
  });
}

// On a terminal, and where --verbose does not tell more.
void Driver::BeginProgress() {
  bool terminal = ::isatty(STDERR_FILENO) == 1 && GetEnv("TERM").value_or("dumb") != "dumb";
  if (!terminal || options_.settings.verbose) return;
  progress_.emplace(options_.plan.size(), SteadyNow());
  ScheduleProgress();
}

void Driver::ScheduleProgress() {
  std::optional<TimePoint> due = progress_->due();
  if (!due || progress_timer_.expiry() == *due) return;
  progress_timer_.expires_at(*due);
  progress_timer_.async_wait([this](const asio::error_code& error) {
    if (error || !progress_) return;
    writers_[1]->Write(progress_->Show(SteadyNow()));
    ScheduleProgress();
  });
}

// ---- hosts that get ready

void Driver::OnReady(uint32_t host, const AgentReady& ready) {
  if (ready.version != HVD_VERSION) {
    return hosts_[host]->Break("it has hvdrun " + Printable(ready.version) +
                               " and this is hvdrun " HVD_VERSION
                               "; install the same version there");
  }
  free_ports_.resize(hosts_.size());
  free_ports_[host] = ready.free_port;
  Happens(AgentIsReady{host});
}

void Driver::AskForProof(uint32_t host) {
  ProveReach question;
  question.job_key = options_.job_key;
  question.host = host;
  question.others = ProofPartners(host, static_cast<uint32_t>(hosts_.size()));
  for (uint32_t other : question.others) question.names.push_back(options_.plan.hosts[other]);
  question.interfaces = options_.interfaces;
  question.first_port = options_.first_port;
  question.last_port = options_.last_port;
  hosts_[host]->Tell(question);
}

// Where the others reached a host is where its ranks will listen.
void Driver::OnProven(uint32_t host, const ReachProven& proven) {
  std::vector<uint32_t> others = ProofPartners(host, static_cast<uint32_t>(hosts_.size()));
  for (size_t i = 0; i < std::min(others.size(), proven.addresses.size()); ++i) {
    const std::string& address = proven.addresses[i];
    std::vector<std::string>& known = options_.hosts[others[i]].addresses;
    if (address.empty() || std::find(known.begin(), known.end(), address) != known.end()) continue;
    known.push_back(address);
    Verbose("host " + options_.plan.hosts[others[i]] + " is reached at " + address + " by " +
            options_.plan.hosts[host]);
  }
  Happens(HostProven{host, proven.trouble});
}

void Driver::StartAll() {
  if (options_.several_machines()) {
    const std::vector<std::string>& first = options_.hosts[0].addresses;
    if (!first.empty()) options_.master_address = first[0];
    options_.master_port = free_ports_[0];
  }
  for (uint32_t host = 0; host < hosts_.size(); ++host)
    hosts_[host]->Tell(StartJobFor(options_, host));
}

// The terminal has stdout, too: the line is gone before that goes on, unless the terminal is stopped.
void Driver::EndProgress() {
  if (!progress_) return;
  std::string wipe = progress_->Wipe();
  progress_.reset();
  progress_timer_.cancel();
  if (wipe.empty()) return;
  writers_[1]->Write(std::move(wipe));
  writers_[1]->FlushFor(std::chrono::milliseconds(50));
}

void Driver::FinishOutput() {
  EndProgress();
  for (int i = 0; i < 2; ++i) {
    throttles_[i]->Flush();
    if (folders_[i]) folders_[i]->Flush();
    text_[i] += prefixers_[i].Close();
  }
  FlushOutput();
  if (files_) {
    files_->Flush();
    SayFileFailure();
  }
  for (auto& writer : writers_) writer->Flush();
  SayScreenFailure();
}

// A reader that left (hvdrun | head) wanted no more; a full disk is another matter.
void Driver::SayScreenFailure() {
  int error = writers_[0]->error();
  if (error == 0 || error == EPIPE) return;
  writers_[1]->Write("hvdrun: the last output of the workers could not be written to stdout: " +
                     std::string(std::strerror(error)) + "\n");
  writers_[1]->Flush();
}

void Driver::SayFileFailure() {
  if (std::optional<std::string> failure = files_->TakeFailure()) Say("hvdrun: " + *failure + "\n");
}

void Driver::Happens(const JobEvent& event) {
  Decision decision = Step(state_, event, SteadyNow());
  if (!decision.reason.empty()) Verbose(decision.reason);
  for (const JobAction& action : decision.actions) Do(action);
  ScheduleDeadline();
}

void Driver::Do(const JobAction& action) {
  std::visit(
      [this](const auto& a) {
        using A = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<A, EndRun>) {
          io_.stop();
        } else if constexpr (std::is_same_v<A, ProveAddresses>) {
          for (uint32_t host = 0; host < hosts_.size(); ++host) AskForProof(host);
        } else if constexpr (std::is_same_v<A, StartWorkers>) {
          StartAll();
        } else if constexpr (std::is_same_v<A, CutHost>) {
          hosts_[a.host]->Cut();
        } else if constexpr (std::is_same_v<A, CutChannels>) {
          for (auto& host : hosts_) host->Cut();
        } else if constexpr (std::is_same_v<A, TellUser>) {
          Say("hvdrun: " + a.sentence + "\n");
        } else {
          if constexpr (std::is_same_v<A, BeginEpoch>) directory_.Begin(a.epoch);
          TellAll(a);
        }
      },
      action);
}

void Driver::TellAll(const ToAgent& message) {
  for (auto& host : hosts_) host->Tell(message);
}

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

void Driver::Verbose(const std::string& text) {
  if (options_.settings.verbose) Say("hvdrun: " + text + "\n");
}

void Driver::Say(const std::string& text) {
  EndProgress();
  text_[1] += prefixers_[1].Close() + text;
  FlushOutput();
}

// Rank 0 is on the first host: ranks are handed out host by host.
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
  EndProgress();  // somebody types into this line
  WorkerInput input{std::move(bytes)};
  for (size_t host = 0; host < input_taken_.size(); ++host) hosts_[host]->Tell(input);
}

// The slowest host says how much more is read.
void Driver::OnInputTaken(uint32_t host, uint64_t bytes) {
  if (host >= input_taken_.size()) return;
  input_taken_[host] += bytes;
  uint64_t allowed = *std::min_element(input_taken_.begin(), input_taken_.end()) + kInputWindow;
  if (allowed > input_allowed_) input_->Allow(allowed - std::exchange(input_allowed_, allowed));
}

void Driver::OnPutKey(PutKey put) {
  if (put.epoch != directory_.epoch()) return;
  KeyValue entry{put.epoch, put.key, std::move(put.value)};
  for (uint32_t host : directory_.Put(entry.key, entry.value)) hosts_[host]->Tell(entry);
}

void Driver::OnWantKey(uint32_t host, const WantKey& want) {
  if (want.epoch != directory_.epoch()) return;
  if (const std::string* value = directory_.Find(want.key)) {
    hosts_[host]->Tell(KeyValue{want.epoch, want.key, *value});
  } else {
    directory_.Await(host, want.key);
  }
}

// The slower of screen and files says how much more the agents may send.
void Driver::OnWritten(Sink sink, const std::vector<OutputReceipt>& receipts) {
  for (const OutputReceipt& receipt : receipts)
    written_[receipt.host].bytes[static_cast<int>(sink)] += receipt.log_bytes;
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    Written& written = written_[host];
    uint64_t done = files_ ? std::min(written.bytes[0], written.bytes[1]) : written.bytes[0];
    if (done == written.returned) continue;
    hosts_[host]->ReturnCredit(done - std::exchange(written.returned, done));
  }
  if (files_) SayFileFailure();
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
