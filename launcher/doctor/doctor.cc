#include "launcher/doctor/doctor.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "launcher/doctor/doctor_json.h"
#include "launcher/doctor/doctor_table.h"
#include "launcher/doctor/findings/findings.h"
#include "launcher/driver/agents/agent_connection.h"
#include "launcher/output/output.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/process_end.h"

namespace hvd {
namespace {

constexpr int kCannotGoOn = 1;
// No connection can be cut off on this machine.
constexpr int kSilentSecondsHere = 30;
constexpr Duration kQuiet =
    std::chrono::milliseconds(500);  // a quick examination shows no progress

class Doctor final : public AgentConnectionObserver {
 public:
  Doctor(DoctorOptions options, ChannelFactory& channels)
      : options_(std::move(options)),
        signals_(io_),
        timer_(io_),
        heartbeat_timer_(io_),
        examination_(options_.examination) {
    const uint64_t job = ParseJobId(options_.job_id).value_or(0);
    const std::vector<ExaminationHost>& hosts = options_.examination.hosts;
    for (uint32_t host = 0; host < hosts.size(); ++host) {
      Heartbeat heartbeat;
      heartbeat.limit_seconds =
          hosts[host].remote ? std::max(1, options_.heartbeat_timeout_seconds) : kSilentSecondsHere;
      heartbeat.every = std::min<Duration>(
          heartbeat.every, std::chrono::milliseconds(heartbeat.limit_seconds * 200));
      lines_.push_back(std::make_unique<AgentConnection>(*this, host, job + host,
                                                         channels.Make(io_, host), heartbeat));
    }
  }

  int Run() {
    HandleSignals();
    begun_ = SteadyNow();
    examination_.Begin(begun_);
    for (auto& line : lines_) line->Open();
    ScheduleHeartbeat();
    GoOn();
    io_.run();
    Show("");
    const DoctorReport report = OneForEachHost(examination_.report());
    const std::vector<Finding> findings = FindingsOf(report);
    const int code = signal_ != 0 ? kSignalBase + signal_ : DoctorExitCode(findings);
    WriteAll(STDOUT_FILENO,
             options_.json ? DoctorJson(report, findings, code) : DoctorTable(report, findings));
    return code;
  }

  void OnHostStage(uint32_t host, HostStage stage) override {
    examination_.Entered(host, stage, SteadyNow());
    GoOn();
  }
  void OnHostTrouble(uint32_t host, const HostTrouble& trouble) override {
    examination_.Troubled(host, trouble, SteadyNow());
    GoOn();
  }
  void OnHostNote(uint32_t, const std::string&) override {}
  // Only hosts with a part in a job are retried.
  void OnHostAway(uint32_t, const std::string&) override {}
  void OnHostBack(uint32_t, Duration) override {}
  void OnOutput(uint32_t host, const WorkerOutputView&, size_t) override {
    lines_[host]->Break("its agent sent output of a rank, but there is none");
  }
  void OnMessage(uint32_t host, ToDriver message) override {
    examination_.Receive(host, message, SteadyNow());
    GoOn();
  }
  void OnReadOver(uint32_t) override {}
  void OnHvdrunSkipped(uint32_t host, const std::string& what) override {
    examination_.Skipped(host, what);
  }
  void OnHostEnd(uint32_t host, const std::string& reason) override {
    examination_.Ended(host, reason, SteadyNow());
    GoOn();
  }

 private:
  // Executes decisions; what follows from them immediately is decided in the same call.
  void GoOn() {
    if (std::exchange(going_on_, true)) return;
    for (auto actions = examination_.PopActions(); !actions.empty();
         actions = examination_.PopActions()) {
      for (const ExaminationAction& action : actions) {
        if (const auto* tell = std::get_if<SendToHost>(&action)) {
          lines_[tell->host]->Send(tell->message);
        } else {
          lines_[std::get<EndHost>(action).host]->Cut();
        }
      }
    }
    going_on_ = false;
    if (examination_.over()) return io_.stop();
    if (SteadyNow() - begun_ >= kQuiet) Show(examination_.Progress());
    ScheduleTick();
  }

  // One line on a terminal, rewritten in place.
  void Show(const std::string& progress) {
    constexpr size_t kMostShown = 70;  // the line must not wrap
    if (progress == shown_ || ::isatty(STDERR_FILENO) == 0) return;
    shown_ = progress;
    std::string text = progress.empty() ? "" : "hvdrun doctor: " + progress.substr(0, kMostShown);
    WriteAll(STDERR_FILENO, "\r\x1b[K" + text);
  }

  void ScheduleTick() {
    std::optional<TimePoint> next = examination_.NextTick();
    if (!next) {
      timer_.cancel();
      return;
    }
    if (SteadyNow() < begun_ + kQuiet) next = std::min(*next, begun_ + kQuiet);  // for Show
    timer_.expires_at(*next);
    timer_.async_wait([this](const asio::error_code& error) {
      if (error) return;
      examination_.Tick(SteadyNow());
      if (std::string slow = examination_.PopSlow(SteadyNow()); !slow.empty()) {
        Show("");
        WriteAll(STDERR_FILENO, "hvdrun doctor: slow hosts: " + slow + "\n");
      }
      GoOn();
    });
  }

  void ScheduleHeartbeat() {
    TimePoint next = TimePoint::max();
    for (const auto& line : lines_) next = std::min(next, line->NextTick());
    heartbeat_timer_.expires_at(next);
    heartbeat_timer_.async_wait([this](const asio::error_code& error) {
      if (error) return;
      for (auto& line : lines_) line->Tick();
      ScheduleHeartbeat();
    });
  }

  // A signal that was ignored when hvdrun began (nohup) stays ignored.
  void HandleSignals() {
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction inherited {};
      if (::sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
        signals_.add(signal);
    }
    WaitForSignals();
  }

  void WaitForSignals() {
    signals_.async_wait([this](const asio::error_code& error, int signal) {
      if (error) return;
      if (signal_ == 0) signal_ = signal;
      examination_.Stop(SteadyNow());
      GoOn();
      WaitForSignals();
    });
  }

  DoctorOptions options_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer timer_, heartbeat_timer_;
  Examination examination_;
  std::vector<std::unique_ptr<AgentConnection>> lines_;
  TimePoint begun_{};
  bool going_on_ = false;
  int signal_ = 0;
  std::string shown_;
};

}  // namespace

int RunDoctor(DoctorOptions options, ChannelFactory& channels) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    Doctor doctor(std::move(options), channels);
    return doctor.Run();
  } catch (const std::exception& failure) {  // out of descriptors, threads or memory
    WriteAll(STDERR_FILENO,
             std::string("hvdrun doctor: it cannot go on: ") + failure.what() + "\n");
    return kCannotGoOn;
  }
}

}  // namespace hvd
