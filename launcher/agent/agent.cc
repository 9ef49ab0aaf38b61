#include "launcher/agent/agent.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "discovery/this_machine.h"
#include "launcher/agent/driver_connection.h"
#include "launcher/agent/environment/host_login.h"
#include "launcher/agent/environment/worker_env.h"
#include "launcher/agent/inspection/host_identity.h"
#include "launcher/agent/inspection/host_questions.h"
#include "launcher/agent/pulse.h"
#include "launcher/agent/stop_signals.h"
#include "launcher/agent/trace_collector.h"
#include "launcher/agent/worker_generations.h"
#include "launcher/agent/workers/binding.h"
#include "launcher/agent/workers/master_port.h"
#include "launcher/agent/workers/torch_version.h"
#include "launcher/agent/workers/worker_gpus.h"
#include "launcher/agent/workers/worker_set.h"
#include "launcher/agent/workers/worker_signals.h"
#include "launcher/channels/bundle/side_command.h"
#include "launcher/external/places/place_server.h"
#include "launcher/live/recorder_reader.h"
#include "launcher/overlay/relay/relay_end.h"
#include "launcher/overlay/tree/tree_member.h"
#include "launcher/process/byte_pump.h"
#include "launcher/process/cgroup.h"
#include "launcher/process/fault.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/jobs/job_place.h"
#include "launcher/process/local_family.h"
#include "launcher/process/local_process_host.h"
#include "launcher/process/one_process.h"
#include "launcher/process/oom.h"
#include "launcher/process/process_tree.h"
#include "launcher/process/recorder_folder.h"
#include "launcher/process/spawn.h"
#include "launcher/process/uncaught.h"
#include "launcher/stall/flight_reader.h"
#include "launcher/stall/rank_examiner.h"
#include "launcher/stall/silence_watch.h"
#include "launcher/stall/stack_reader.h"
#include "launcher/tuning/job_tuner.h"
#include "launcher/wire/messages.h"
#include "runtime/base/cpu_quota.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/test_env.h"
#include "runtime/net/mesh/mesh_address.h"

namespace hvd {
namespace {

// Without its driver a job ends quickly, whatever its grace period.
constexpr Duration kOrphanGrace = std::chrono::seconds(2);
// How long an agent whose workers have ended waits for hvdrun to print their output: less than
// hvdrun waits for it (JobOptions::finish_limit).
constexpr Duration kPrintingLimit = std::chrono::seconds(2);
constexpr int kAgentFailed = 1;
// Limit for the first message of the driver.
constexpr int kFirstMessageSeconds = 60;

// Combines functions, one per message, into a visitor.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

class Agent final : public DriverConnectionOwner, public WorkerSetOwner {
 public:
  explicit Agent(AgentOptions options);

  int Run();

  // DriverConnectionOwner.
  void OnDriverMessage(ToAgent message) override;
  void OnDriverMessagesOver() override {
    if (sent_gone_ && driver_.AllAcknowledged()) End(0);
  }
  void OnDriverFlushed() override;
  void OnDriverTick() override { tree_.Tick(SteadyNow()); }
  void OnDriverAway(const std::string& reason) override {
    // On the driver's machine the driver that takes over logs this.
    if (!GetEnv(kLocalAgentName)) LogWarning(Title() + reason + "; waiting for it to come back");
  }
  void OnDriverGone(const std::string& reason) override;

  // WorkerSetOwner.
  void Send(const ToDriver& message) override {
    if (!tree_.Up(message)) driver_.Send(message);
  }
  void SendOutput(uint32_t rank, OutputStream stream, std::string_view first,
                  std::string_view second) override {
    silence_watch_.NoteOutput(rank);
    driver_.SendOutput(rank, stream, first, second);
  }
  uint64_t CommitsOf(uint32_t slot) const override { return generations_.CommitsOf(slot); }
  bool OnWorkerExit(uint32_t slot, int pid, bool killed) override;
  void OnWorkerOver() override;

 private:
  const StartJob& start() const { return workers_.start(); }
  std::string Title() const;
  void EverySecond();
  void SendPulseToWarden();

  void Prove(ProbeConnectivity question);
  void Examine(const ExamineHost& question);
  template <typename Message>
  void Await(Message await);
  void Answer(const TakeOver& question);
  void OpenPlaces();
  void Start(StartJob start);
  void StartWorkers();
  WorkerLink::Recorder OpenRecorder();
  void PassOn(const SignalWorkers& message);
  bool AskToStop(int signal);
  void Finish();
  void FinishIfSilent();
  bool LastOutputPrinted();
  void TerminateOrphans();
  void OnWardenGone();
  void End(int code);

  AgentOptions options_;
  asio::io_context io_{1};
  DriverConnection driver_;
  BytePump warden_;
  UniqueFd cgroup_;  // invalid: workers have no cgroup of their own
  WorkerSet workers_;
  LocalProcessHost host_;
  asio::steady_timer end_timer_, second_timer_;
  bool started_ = false;
  OomCounters oom_;
  OomBaseline oom_baseline_{oom_.Kills()};
  bool waits_for_printing_ = false, printing_over_ = false;
  bool finishing_ = false, sent_gone_ = false, orphaned_ = false;
  int code_ = kAgentFailed;
  MasterPort master_port_{[this](const ToDriver& message) { Send(message); }};
  std::optional<PlaceServer> places_;  // of a job whose ranks another launcher starts
  TreeMember tree_;
  RelayEnd relay_;
  HostQuestions questions_;
  TraceCollector traces_;
  WorkerSignals signals_;
  WorkerGenerations generations_;
  StopSignals stop_signals_;
  SteadyClock clock_;
  RankExaminer examiner_;
  RecorderReader recorders_;
  StackReader stacks_;
  FlightReader flights_;
  SilenceWatch silence_watch_;
  JobTuner tuner_;
};

// For --verbose: the means by which this agent ensures that nothing is left behind.
std::string MeansInForce(bool has_cgroup) {
  std::string means = has_cgroup ? "cgroup of its own, " : "";
  means += "subreaper, sessions, parent-death signal, job id in /proc/PID/environ";
  if (HavePidfd()) means += ", pidfd";
  return means;
}

Agent::Agent(AgentOptions options)
    : options_(std::move(options)),
      driver_(io_, options_.job_id, *this),
      warden_(io_, std::move(options_.warden.alive), UniqueFd(),
              {[](std::string_view) {}, [] {}, [this] { OnWardenGone(); }}),
      cgroup_(OpenCgroup(options_.job_id)),
      workers_(io_, host_, *this),
      host_(io_, workers_, cgroup_.get()),
      end_timer_(io_),
      second_timer_(io_),
      tree_(io_, {[this](const ToDriver& message) { driver_.Send(message); },
                  [this](ToAgent message) { OnDriverMessage(std::move(message)); }}),
      relay_(io_, [this](const ToDriver& message) { driver_.Send(message); }),
      questions_(io_, [this](const ToDriver& message) { Send(message); }),
      traces_(
          io_, [this](const ToDriver& message) { driver_.Send(message); },
          [this] { FinishIfSilent(); }),
      signals_(workers_, options_.job_id,
               [this](pid_t pid, int status) { host_.NoteReaped(pid, status); }),
      generations_({io_, workers_, signals_, relay_, traces_, recorders_, tuner_},
                   [this](const ToDriver& message) { Send(message); }),
      stop_signals_(
          io_, [this](int signal) { return AskToStop(signal); },
          // Schedulers send these to all processes of a step. SIGUSR1 requests to stop after the
          // step; if all ranks handle it, nothing else is done.
          [this](int signal) {
            const bool asked = signal == SIGUSR1 && AskToStop(signal);
            if (!asked || start().policy.stops_at_commit == 0)
              Send(signals_.Forward({0, signal}, generations_, SteadyNow()));
            return asked;
          }),
      examiner_(io_, clock_, [this](const ToDriver& message) { Send(message); }),
      recorders_(io_, [this](const ToDriver& message) { driver_.Send(message); }),
      stacks_(io_, [this](const ToDriver& message) { driver_.Send(message); }),
      flights_(io_, clock_, [this](const ToDriver& message) { driver_.Send(message); }),
      silence_watch_(
          io_, clock_,
          {[this] { return workers_.Running(); }, [this] { return generations_.in_use(); },
           [this](const ToDriver& message) { driver_.Send(message); }}),
      tuner_(
          io_, TuningMemory(TuningFolder(GetEnv)),
          [this](const std::string& text) { Send(AgentWarning{text}); },
          [this](std::span<const TraceRecord> records) { traces_.Add(0, records); }) {}

int Agent::Run() {
  stop_signals_.OpenWarnings();
  BecomeSubreaper();
  if (options_.line) {
    driver_.Open(std::move(*options_.line), std::move(options_.input));
  } else {
    driver_.Open(std::move(options_.input), std::move(options_.output));
  }
  // The driver on another machine sends a limit with its first message; it may be cut off before
  // that.
  if (!GetEnv(kLocalAgentName)) {
    driver_.SetSilenceLimit(
        std::chrono::seconds(TestNumber("HVD_TEST_FIRST_MESSAGE_SECONDS", kFirstMessageSeconds)));
  }
  Send(AgentReady{::getpid(), ::getppid(), MeansInForce(cgroup_.valid()), HVD_VERSION,
                  master_port_.port(), HostIdentity(), DefaultSlots(), OnlineCpus()});
  Send(AgentPath{options_.executable, driver_.listener_address()});
  EverySecond();
  io_.run();
  return code_;
}

std::string Agent::Title() const {
  return started_ ? "agent on host " + start().host + ": " : "agent: ";
}

// Dispatches each message to the part of the agent that handles it.
void Agent::OnDriverMessage(ToAgent message) {
  const Overloaded parts{
      [this](ProbeConnectivity& question) { Prove(std::move(question)); },
      [this](const LookAtCommand& question) { questions_.Answer(question); },
      [this](const AskTime& question) { questions_.Answer(question); },
      [this](const ExamineHost& question) { Examine(question); },
      [this](OpenProbe& question) {
        if (!started_) questions_.Answer(std::move(question));
      },
      [this](const MeasurePair& question) { questions_.Answer(question); },
      [this](AwaitDriver& await) { Await(std::move(await)); },
      [this](AwaitSuccessor& await) { Await(std::move(await)); },
      [this](const TakeOver& question) { Answer(question); },
      [this](const OutputPrinted& printed) {
        driver_.NotePrinted(printed);
        FinishIfSilent();
      },
      [this](const AwaitPlaces&) { OpenPlaces(); },
      [this](StartJob& start) { Start(std::move(start)); },
      [this](const BeginGeneration& generation) {
        driver_.set_generation(generation.generation);
        generations_.Handle(generation);
      },
      [this](const KeyValue& entry) {
        questions_.GiveValue(entry);
        generations_.Handle(entry);
      },
      [this](const WorkerInput& input) { workers_.FeedStdin(input.bytes); },
      [this](const AskMemory& question) { workers_.Answer(question); },
      [this](const Resend&) { workers_.Resend(); },
      [this](const ExamineRanks& question) { examiner_.Answer(question); },
      [this](const AskCounts& question) { recorders_.Answer(question); },
      [this](const AskRings& question) { recorders_.Answer(question); },
      [this](const AskStacks& question) { stacks_.Answer(question, workers_.Running()); },
      [this](const AskFlight& question) { flights_.Answer(question, workers_.Running()); },
      [this](const TraceTaken& taken) { traces_.Acknowledge(taken.bytes); },
      [this](const TreeDown& entries) { tree_.Down(entries); },
      [this](const UseRelay& use) { relay_.Use(use); },
      [this](const SignalWorkers& signal) { PassOn(signal); },
      [this](const SignalWorker& signal) { signals_.Handle(signal); },
      [this](const ForwardSignal& signal) {
        Send(signals_.Forward(signal, generations_, SteadyNow()));
      },
      [this](const MasterPortTaken& taken) { master_port_.Handle(taken); },
      [this](const FinishJob&) { Finish(); },
      [this](const auto& other) {
        if constexpr (requires { generations_.Handle(other); }) {
          generations_.Handle(other);
        } else {
          relay_.Handle(other);
        }
      },
  };
  std::visit(parts, message);
}

void Agent::OnDriverFlushed() {
  host_.HoldOutput(driver_.HoldsOutput());
  FinishIfSilent();
}

void Agent::EverySecond() {
  SendPulseToWarden();
  oom_baseline_.Look(oom_.Kills(), [this] { return workers_.AnyDying(IsDying); });
  master_port_.Look(start(), SteadyNow());
  second_timer_.expires_after(kPulseEvery);
  second_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) EverySecond();
  });
}

// The warden cannot see the stream: the pulse names the process whose end is the end of the stream.
void Agent::SendPulseToWarden() {
  Duration grace = std::chrono::milliseconds(std::max<int64_t>(start().limits.driver_grace_ms, 0));
  SendPulse(options_.warden.pulse.get(),
            {driver_.HolderPid(),
             static_cast<uint32_t>(std::min<int64_t>(grace / kPulseEvery, INT32_MAX))});
}

// ---- starting

void Agent::Prove(ProbeConnectivity question) {
  if (questions_.probing() || started_) return;
  std::string tree_record = tree_.Listen(question);
  questions_.Answer(std::move(question), std::move(tree_record));
}

void Agent::Examine(const ExamineHost& question) {
  if (questions_.examining() || started_) return;
  driver_.SetSilenceLimit(std::chrono::milliseconds(question.silence_limit_ms));
  SpawnDescriptors descriptors;
  descriptors.cgroup_fd = cgroup_.get();
  descriptors.descriptor_limit = host_.child_descriptor_limit();
  questions_.Answer(question, options_.job_id, descriptors);
}

void Agent::OpenPlaces() {
  if (places_ || started_) return;
  places_.emplace(io_, [this](PlaceNumber taken) { Send(PlaceTaken{taken.place, taken.of}); });
  if (Status listening = places_->Listen(options_.job_id); !listening.ok())
    return Send(PlacesRefused{listening.message()});
  workers_.UsePlaces(*places_);
}

void Agent::Start(StartJob start) {
  if (started_ || start.program.argv.empty()) return;
  started_ = true;
  questions_.StopProbes();  // workers are spawned by a single-threaded process
  std::vector<Cpu> cpus = PartOfMachine(AllowedCpus(), start.share.part, start.share.parts);
  master_port_.Open(start, SteadyNow());
  driver_.set_generation(0);
  tree_.Join(start);
  driver_.SetSilenceLimit(std::chrono::milliseconds(start.limits.silence_ms));
  if (start.policy.stops_at_commit != 0) stop_signals_.Open();
  const std::vector<GpuDevice> gpus = GpusFor(start);
  // Agents that share a machine share its quota, too.
  std::optional<double> quota = OwnCpuQuota();
  if (quota && start.share.parts > 1) *quota /= start.share.parts;
  workers_.Prepare(std::move(start), std::move(cpus), gpus, quota);
  StartWorkers();
}

void Agent::StartWorkers() {
  const StartJob& job = start();
  traces_.Begin(job.trace);
  if (auto tuning = TuningSettingsOf(job.program.settings, job.program.directory))
    tuner_.Begin(std::move(*tuning));
  if (Result<std::vector<RankPlace>> places = PlacesOf(job.ranks.layout, job.ranks.size);
      places.ok())
    relay_.SetWorld(job.job_key, std::move(*places));
  examiner_.Watch(generations_.Open(), start().policy.measures_training != 0);
  WorkerLink link{MakeLinkAddress(options_.job_id), options_.job_id};
  if (std::optional<JobPlace> place = PlaceHere()) link.job_place = JobPlaceText(*place);
  link.recorder = OpenRecorder();
  if (!job.meeting.listen_addresses.empty())
    link.interface = InterfaceOf(job.meeting.listen_addresses.front());
  // Only the agents of other hosts have a limit for hvdrun's silence.
  if (job.limits.silence_ms > 0) link.login = LoginHere(job.program.environment);
  Status listening = FaultAsked("listen") ? Internal("no socket could be made for the workers")
                                          : generations_.Listen(link.agent_address);
  if (!listening.ok()) return workers_.ReportNotStarted(EIO, listening.message());
  const size_t ranks = job.ranks.slots.size();
  if (std::string why = DescriptorShortage(ranks, DescriptorLimit(), job.host); !why.empty())
    return workers_.ReportNotStarted(EMFILE, why);
  if (std::string why = LinkShortage(ranks, DescriptorLimit(), job.host); !why.empty())
    Send(AgentWarning{why + "; hvd.init() will fail"});
  workers_.Start(link, PathsBeside(options_.executable), std::move(options_.user_stdin));
  silence_watch_.Begin(
      std::chrono::milliseconds(std::max<int64_t>(job.limits.script_warning_ms, 0)));
}

// Opens the folder for PyTorch's flight recorder, if the workers' PyTorch has one.
WorkerLink::Recorder Agent::OpenRecorder() {
  const StartJob& job = start();
  WorkerLink::Recorder recorder;
  if (job.limits.script_warning_ms <= 0 || job.ranks.slots.empty()) return recorder;
  std::string path = kDefaultPath;
  for (const std::string& entry : WorkerEnvironment(job, 0, {}, {}, {})) {
    if (entry.starts_with("PATH=")) path = entry.substr(entry.find('=') + 1);
  }
  const std::optional<TorchVersion> torch =
      FindTorch(job.program.argv, path, job.program.directory);
  if (!torch || RecorderVariables(*torch, "").empty()) return recorder;
  recorder = {RecorderFolder(options_.job_id, ::getppid()), *torch};
  if (!MakeRecorderFolder(recorder.folder)) return {};
  flights_.Open(recorder.folder);
  return recorder;
}

// Allowed long before the job starts: an agent that waits for slow hosts may lose a connection,
// too.
template <typename Message>
void Agent::Await(Message await) {
  if (Status open = driver_.Await(std::move(await)); !open.ok())
    Send(AgentNote{"a lost connection cannot be made anew: " + open.message()});
}

// Answers over the agent's own stream even if there is a tree: an agent above may have kept
// messages for the former driver.
void Agent::Answer(const TakeOver& question) {
  driver_.Send(AgentReady{::getpid(), ::getppid(), MeansInForce(cgroup_.valid()), HVD_VERSION,
                          master_port_.port(), HostIdentity(), DefaultSlots(), OnlineCpus()});
  driver_.Send(AgentPath{options_.executable, driver_.listener_address()});
  HostSnapshot snapshot;
  snapshot.started = started_ ? 1 : 0;
  workers_.AddTo(snapshot);
  generations_.AddTo(snapshot);
  driver_.Send(snapshot);
  for (const ToDriver& entry : generations_.OpenEntries()) driver_.Send(entry);
  driver_.SendKept(question.printed);
  if (sent_gone_) driver_.Send(AgentGone{});
  FinishIfSilent();
}

// ---- workers

bool Agent::OnWorkerExit(uint32_t slot, int pid, bool killed) {
  generations_.NoteExit(slot, pid);
  flights_.NoteFailure(workers_.NumberOf(slot));
  return killed && oom_baseline_.CountKill(oom_.Kills());
}

void Agent::OnWorkerOver() {
  FinishIfSilent();
  if (!orphaned_ || workers_.AnyRunning()) return;
  if (!host_.Reap()) signals_.KillAll();
  End(kAgentFailed);
}

// ---- ending

void Agent::PassOn(const SignalWorkers& message) {
  if (message.signal == SIGSTOP || message.signal == SIGCONT) {
    driver_.absence().set_paused(message.signal == SIGSTOP);
  } else {
    driver_.absence().NoteEnding();
  }
  signals_.Handle(message);
}

// False: no rank here trains, so none could leave after its step.
bool Agent::AskToStop(int signal) {
  if (!generations_.in_use() || orphaned_) return false;
  Send(StopRequested{signal});
  return true;
}

void Agent::Finish() {
  finishing_ = true;
  if (!host_.Reap()) signals_.KillAll();
  FinishIfSilent();
}

// Finishes once the workers have ended and all their output has been sent.
void Agent::FinishIfSilent() {
  if (!finishing_ || sent_gone_ || driver_.HasOutputToSend() || !host_.OutputEnded()) return;
  if (!traces_.Finish() || !LastOutputPrinted()) return;
  sent_gone_ = true;
  flights_.Close();
  tree_.Close();
  generations_.DropPage();
  Send(AgentGone{});
}

// If the driver is killed now, its successor must print this output, which only this agent has. The
// reader of the driver's output may have stopped.
bool Agent::LastOutputPrinted() {
  if (!driver_.KeepsOutput() || printing_over_) return true;
  if (std::exchange(waits_for_printing_, true)) return false;
  end_timer_.expires_after(kPrintingLimit);
  end_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    printing_over_ = true;
    FinishIfSilent();
  });
  return false;
}

void Agent::OnDriverGone(const std::string& reason) {
  if (sent_gone_) return End(0);
  if (std::exchange(orphaned_, true)) return;
  driver_.GiveUp();
  driver_.Flush();  // output is no longer held
  LogWarning(Title() + reason + "; ending the workers");
  if (host_.Reap()) return End(kAgentFailed);
  // The grace period for a driver that may come back has passed.
  if (driver_.awaits() || start().limits.driver_grace_ms <= 0) return TerminateOrphans();
  end_timer_.expires_after(std::chrono::milliseconds(start().limits.driver_grace_ms));
  end_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) TerminateOrphans();
  });
}

void Agent::TerminateOrphans() {
  signals_.SignalAll(SIGTERM);
  Duration grace = std::min<Duration>(std::chrono::milliseconds(start().limits.terminate_grace_ms),
                                      kOrphanGrace);
  end_timer_.expires_after(grace);
  end_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    signals_.KillAll();
    End(kAgentFailed);
  });
}

void Agent::OnWardenGone() {
  warden_.Close();
  signals_.KillAll();
  RemoveCgroup(options_.job_id);
  End(kAgentFailed);
}

// Without a driver nothing would remove the cgroup if the warden were killed before its turn.
void Agent::End(int code) {
  code_ = code;
  flights_.Close();
  if (orphaned_) RemoveCgroup(options_.job_id, Duration::zero());
  tree_.Close();
  io_.stop();
}

}  // namespace

int RunAgent(AgentOptions options) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    Agent agent(std::move(options));
    return agent.Run();
  } catch (const std::exception& failure) {  // for example out of descriptors, processes or memory
    LogError(std::string("the agent cannot go on: ") + MeaningOf(failure));
    return kAgentFailed;
  }
}

}  // namespace hvd
