#include "launcher/agent.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "launcher/binding.h"
#include "launcher/byte_pump.h"
#include "launcher/cgroup.h"
#include "launcher/fault.h"
#include "launcher/host_epochs.h"
#include "launcher/job_id.h"
#include "launcher/lines.h"
#include "launcher/local_process_host.h"
#include "launcher/messages.h"
#include "launcher/oom.h"
#include "launcher/process_tree.h"
#include "launcher/reach_proof.h"
#include "launcher/start_job.h"
#include "launcher/stdin_feeder.h"
#include "launcher/worker_env.h"
#include "runtime/base/log.h"
#include "runtime/net/stream.h"

namespace hvd {
namespace {

constexpr Duration kKillLimit = std::chrono::seconds(3);
// Without its driver a job ends quickly, whatever grace it was given.
constexpr Duration kOrphanGrace = std::chrono::seconds(2);
constexpr size_t kMaxLogPiece = kMaxFramePayload - kOutputOverhead;
constexpr int kAgentFailed = 1;

int64_t Nanoseconds(TimePoint t) { return t.time_since_epoch().count(); }

class Agent final : public ProcessObserver, public HostEpochsObserver {
 public:
  explicit Agent(AgentOptions options);

  int Run();

  // ProcessObserver; a worker's number is its slot.
  void OnOutput(uint32_t slot, OutputStream stream, std::string_view bytes) override;
  void OnOutputEnd(uint32_t slot, OutputStream stream) override;
  void OnExit(uint32_t slot, ProcessEnd end, TimePoint noticed) override;

  // HostEpochsObserver.
  Status OnHello(const LinkHello&) override { return Status::Ok(); }
  void OnJoined(uint32_t slot) override { Tell(RankJoined{RankOf(slot)}); }
  void OnLeft(uint32_t slot, uint64_t epoch) override;
  void OnLost(uint32_t slot, const LostRank& lost) override;
  void OnLinkClosed(uint32_t) override {}
  void OnLayout(uint32_t, std::vector<RankRun>) override {}  // the driver knows
  void OnPut(const LinkPut& put) override { Tell(PutKey{put.epoch, put.key, put.value}); }
  void OnWanted(const LinkGet& get) override { Tell(WantKey{get.epoch, get.key}); }

 private:
  struct Slot {
    int pid = 0;
    bool running = false;
    LineBuffer lines[2];
    LastLines last_stderr;
  };

  // The stream.
  void OnBytes(std::string_view bytes);
  void Handle(ToAgent message);
  void Tell(const ToDriver& message);
  void Flush();
  void ScheduleTick();
  void LookForDriver();

  // What the driver asks for.
  void On(StartJob start);
  void On(const BeginEpoch& message);
  void On(const BreakEpoch& message);
  void On(const SignalWorkers& message);
  void On(const FinishJob& message);
  void On(const WorkerInput& message);
  void On(const KeyValue& message);
  void On(ProveReach question);

  void ShareCores();
  bool ReadsInput(uint32_t slot) const;
  void StartWorker(uint32_t slot);
  void SendOutput(uint32_t slot, OutputStream stream, std::string_view first,
                  std::string_view second);
  std::string MeansInForce() const;
  void SignalAll(int signal);
  void FinishIfSilent();
  void KillAll();
  void OnDriverGone(const std::string& reason);
  void TerminateOrphans();
  void EndOrphanIfAlone();
  void OnWardenGone();
  void End(int code);
  uint32_t RankOf(uint32_t slot) const { return start_.slots[slot].rank; }

  AgentOptions options_;
  asio::io_context io_{1};
  Stream stream_;
  BytePump pump_;
  BytePump warden_;
  UniqueFd cgroup_;  // invalid: workers have none of their own
  LocalProcessHost host_;
  StdinFeeder feeder_;
  asio::steady_timer tick_timer_, end_timer_;
  std::optional<HostEpochs> epochs_;
  StartJob start_;
  std::string link_address_;
  bool started_ = false;
  std::vector<Slot> slots_;
  uint32_t host_cores_ = 0;
  std::vector<std::vector<int>> bound_;  // by slot
  std::vector<uint32_t> core_shares_;
  OomCounters oom_;
  uint64_t oom_kills_before_ = oom_.Kills();
  bool killing_ = false;
  bool finishing_ = false, said_gone_ = false, orphaned_ = false;
  bool paused_ = false;
  int code_ = kAgentFailed;
  HeldPort master_port_ = HoldPort(/*everywhere=*/true);
  std::unique_ptr<ReachProof> proof_;  // while the hosts look for each other
};

HostWorld WorldOf(const StartJob& start) {
  HostWorld world;
  world.host = start.host;
  world.slots = start.slots;
  world.size = start.size;
  world.homogeneous = start.homogeneous != 0;
  world.layout = start.layout;
  world.data_key = start.job_key;
  world.listen = {start.listen_addresses, start.first_port, start.last_port};
  return world;
}

StreamOptions OptionsOf(const std::string& job_id) {
  StreamOptions options;
  options.job = ParseJobId(job_id).value_or(0);
  return options;
}

Agent::Agent(AgentOptions options)
    : options_(std::move(options)),
      stream_(OptionsOf(options_.job_id)),
      pump_(io_, std::move(options_.input), std::move(options_.output),
            {[this](std::string_view bytes) { OnBytes(bytes); }, [this] { Flush(); },
             [this] { OnDriverGone("the stream to the driver ended"); }}),
      warden_(io_, std::move(options_.warden_alive), UniqueFd(),
              {[](std::string_view) {}, [] {}, [this] { OnWardenGone(); }}),
      cgroup_(OpenCgroup(options_.job_id)),
      host_(io_, *this, cgroup_.get()),
      feeder_(io_, [this](uint64_t bytes) { Tell(InputTaken{bytes}); }),
      tick_timer_(io_),
      end_timer_(io_) {}

// For --verbose: how this agent makes sure that nothing is left behind.
std::string Agent::MeansInForce() const {
  std::string means = cgroup_.valid() ? "cgroup of its own, " : "";
  means += "subreaper, sessions, parent-death signal, job id in /proc/PID/environ";
  if (HavePidfd()) means += ", pidfd";
  return means;
}

int Agent::Run() {
  BecomeSubreaper();
  stream_.Attach(SteadyNow());
  Tell(AgentReady{::getpid(), ::getppid(), MeansInForce(), HVD_VERSION, master_port_.port});
  ScheduleTick();
  io_.run();
  return code_;
}

// ---- the stream

void Agent::OnBytes(std::string_view bytes) {
  Status status = stream_.Receive(bytes, SteadyNow());
  while (std::optional<StreamMessage> message = stream_.Next()) {
    Result<ToAgent> decoded = DecodeToAgent(message->bytes);
    if (!decoded.ok()) {
      status = decoded.status();
      break;
    }
    Handle(std::move(*decoded));
  }
  if (!status.ok()) {
    pump_.Close();
    return OnDriverGone("the stream to the driver is damaged: " + status.message());
  }
  Flush();
  if (said_gone_ && stream_.AllAcknowledged()) End(0);
}

void Agent::Handle(ToAgent message) {
  std::visit([this](auto& m) { On(std::move(m)); }, message);
}

void Agent::Tell(const ToDriver& message) {
  stream_.SendControl(EncodeToDriver(message));
  Flush();
}

void Agent::Flush() {
  while (pump_.open()) {
    std::string_view out = stream_.Outgoing();
    if (out.empty()) break;
    size_t wanted = out.size();
    size_t written = pump_.Write(out);
    stream_.Consume(written);
    if (written < wanted) break;
  }
  host_.HoldOutput(stream_.LogsHeld() && pump_.open());
  FinishIfSilent();
}

void Agent::ScheduleTick() {
  tick_timer_.expires_at(stream_.NextTick());
  tick_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    stream_.Tick(SteadyNow());
    Flush();
    LookForDriver();
    ScheduleTick();
  });
}

// A driver that was cut off leaves a stream without an end. One that is stopped with its workers is not lost.
void Agent::LookForDriver() {
  if (start_.silence_limit_ms <= 0 || orphaned_ || paused_) return;
  Duration limit = std::chrono::milliseconds(start_.silence_limit_ms);
  if (SteadyNow() - stream_.last_heard() < limit) return;
  OnDriverGone("nothing was heard of the driver for " +
               std::to_string(start_.silence_limit_ms / 1000) + " s");
}

// ---- starting

void Agent::On(ProveReach question) {
  if (proof_ || started_) return;
  proof_ = std::make_unique<ReachProof>(
      std::move(question),
      ReachProof::Owner{
          [this](std::string key, std::string value) {
            asio::post(io_,
                       [this, put = PutKey{0, std::move(key), std::move(value)}] { Tell(put); });
          },
          [this](std::string key) {
            asio::post(io_, [this, want = WantKey{0, std::move(key)}] { Tell(want); });
          },
          [this](ReachProven answer) {
            asio::post(io_, [this, answer = std::move(answer)] {
              Tell(answer);
              proof_.reset();
            });
          }});
}

void Agent::On(StartJob start) {
  if (started_ || start.argv.empty()) return;
  started_ = true;
  proof_.reset();  // workers are spawned by a process of one thread
  link_address_ = MakeLinkAddress(options_.job_id);
  start_ = std::move(start);
  slots_.resize(start_.slots.size());
  stream_.set_epoch(0);
  if (start_.silence_limit_ms > 0) {  // the driver listens for as long as we do
    stream_.set_heartbeat(std::min<Duration>(
        StreamOptions().heartbeat, std::chrono::milliseconds(start_.silence_limit_ms / 5)));
    ScheduleTick();
  }
  ShareCores();
  epochs_.emplace(io_, *this, WorldOf(start_), start_.job_key,
                  "; why is in the last lines of hvdrun's output");
  Status listening = FaultAsked("listen") ? Internal("no socket could be made for the workers")
                                          : epochs_->links().Listen(link_address_);
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (listening.ok()) {
      StartWorker(slot);
    } else {
      Tell(WorkerNotStarted{RankOf(slot), EIO, listening.message()});
    }
  }
}

// The cores that this agent may use are those of its workers.
void Agent::ShareCores() {
  std::vector<Cpu> cpus = PartOfCpus(AllowedCpus(), start_.machine_part, start_.machine_parts);
  host_cores_ = static_cast<uint32_t>(cpus.size());
  bound_ = BindRanks(start_.bind_to, std::move(cpus), static_cast<uint32_t>(slots_.size()));
  core_shares_ = CoreShares(bound_);
  for (const std::string& entry :
       WorkerEnvironment(start_, 0, {}, {}, {host_cores_, core_shares_.at(0)})) {
    if (entry.starts_with("OMP_NUM_THREADS="))
      Tell(AgentNote{"workers share " + std::to_string(host_cores_) + " cores; " + entry});
  }
}

bool Agent::ReadsInput(uint32_t slot) const {
  return start_.stdin_to == StdinTo::kAll ||
         (start_.stdin_to == StdinTo::kRank0 && RankOf(slot) == 0);
}

void Agent::StartWorker(uint32_t slot) {
  WorkerLink link{link_address_, options_.job_id};
  WorkerCores cores{host_cores_, core_shares_[slot]};
  SpawnRequest request{
      start_.argv, WorkerEnvironment(start_, slot, link, PathsBeside(options_.executable), cores),
      start_.directory, bound_[slot]};
  UniqueFd input;
  if (ReadsInput(slot)) {
    input = feeder_.AddPipe();
    if (!input.valid())
      return Tell(WorkerNotStarted{RankOf(slot), EMFILE, "no pipe could be made for its stdin"});
    request.stdin_fd = input.get();
  }
  SpawnOutcome outcome = host_.Spawn(slot, request);
  if (outcome.pid == 0) {
    return Tell(WorkerNotStarted{RankOf(slot), outcome.error,
                                 outcome.reason + " (host " + start_.host + ")"});
  }
  slots_[slot].pid = outcome.pid;
  slots_[slot].running = true;
  if (!bound_[slot].empty())
    Tell(AgentNote{"rank " + std::to_string(RankOf(slot)) + " is kept on CPUs " +
                   CpuListText(bound_[slot])});
  Tell(WorkerStarted{RankOf(slot), outcome.pid});
}

// ---- output and exits

void Agent::OnOutput(uint32_t slot, OutputStream stream, std::string_view bytes) {
  if (stream == OutputStream::kStderr) slots_[slot].last_stderr.Add(bytes);
  LineBuffer::Ready ready = slots_[slot].lines[static_cast<int>(stream)].Add(bytes);
  SendOutput(slot, stream, ready.held, ready.bytes);
}

void Agent::OnOutputEnd(uint32_t slot, OutputStream stream) {
  SendOutput(slot, stream, slots_[slot].lines[static_cast<int>(stream)].Flush(), {});
  FinishIfSilent();
}

// The two pieces follow each other.
void Agent::SendOutput(uint32_t slot, OutputStream stream, std::string_view first,
                       std::string_view second) {
  if (orphaned_) return;  // nobody is left to read it
  while (!first.empty() || !second.empty()) {
    std::string_view head = first.substr(0, kMaxLogPiece);
    std::string_view tail = second.substr(0, kMaxLogPiece - head.size());
    stream_.SendLog(EncodeOutput(RankOf(slot), stream, head, tail));
    first.remove_prefix(head.size());
    second.remove_prefix(tail.size());
  }
  Flush();
}

void Agent::OnExit(uint32_t slot, ProcessEnd end, TimePoint noticed) {
  Slot& s = slots_[slot];
  s.running = false;
  epochs_->NoteExit(slot, s.pid);
  bool killed = end.by_signal && end.value == SIGKILL && !killing_;
  bool out_of_memory = killed && oom_.Kills() > oom_kills_before_;
  Tell(WorkerExited{RankOf(slot), s.pid, end, Nanoseconds(noticed), s.last_stderr.Text(),
                    out_of_memory});
  FinishIfSilent();
  if (orphaned_) EndOrphanIfAlone();
}

// ---- links and epochs

void Agent::OnLeft(uint32_t slot, uint64_t epoch) {
  Tell(RankLeft{RankOf(slot), epoch, Nanoseconds(SteadyNow())});
}

void Agent::OnLost(uint32_t slot, const LostRank& lost) {
  Tell(RankLost{RankOf(slot), lost.pid, lost.epoch, Nanoseconds(lost.noticed), lost.reason,
                lost.doing});
}

void Agent::On(const BeginEpoch& message) {
  stream_.set_epoch(message.epoch);
  if (epochs_) (void)epochs_->Begin(message.epoch);  // whoever waits has been told why not
}

void Agent::On(const BreakEpoch& message) {
  if (epochs_) epochs_->Break(message.epoch, message.reason);
}

void Agent::On(const KeyValue& message) {
  if (proof_ && message.epoch == 0) proof_->GiveValue(message.key, message.value);
  if (epochs_) epochs_->GiveValue(message.epoch, message.key, message.value);
}

// ---- ending

void Agent::On(const SignalWorkers& message) {
  if (message.signal == SIGSTOP || message.signal == SIGCONT) paused_ = message.signal == SIGSTOP;
  SignalAll(message.signal);
}

void Agent::SignalAll(int signal) {
  if (signal == SIGKILL) return KillAll();
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].running) host_.Signal(slot, signal);
  }
  if (signal == SIGSTOP || signal == SIGCONT) {
    for (const ProcessInfo& process : DescendantsOf(::getpid(), ListProcesses())) {
      SignalProcess(process, signal);
    }
  } else {
    SignalAll(SIGCONT);  // who is stopped hears nothing else
  }
}

// Everything below this agent; their exits come in as usual.
void Agent::KillAll() {
  killing_ = true;
  KillEverything(options_.job_id, {::getppid()}, kKillLimit,
                 [this](pid_t pid, int status) { host_.NoteReaped(pid, status); });
}

void Agent::On(const FinishJob&) {
  finishing_ = true;
  if (!host_.Reap()) KillAll();
  FinishIfSilent();
}

void Agent::On(const WorkerInput& message) { feeder_.Feed(message.bytes); }

// All output is on its way: nothing more will come.
void Agent::FinishIfSilent() {
  if (!finishing_ || said_gone_ || stream_.LogsHeld() || !host_.OutputEnded()) return;
  said_gone_ = true;
  if (epochs_) epochs_->DropPage();
  Tell(AgentGone{});
}

void Agent::OnDriverGone(const std::string& reason) {
  pump_.Close();
  if (said_gone_) return End(0);
  if (orphaned_) return;
  orphaned_ = true;
  LogWarning("agent on host " + start_.host + ": " + reason + "; ending the workers");
  if (host_.Reap()) return End(kAgentFailed);
  if (start_.driver_grace_ms <= 0) return TerminateOrphans();
  end_timer_.expires_after(std::chrono::milliseconds(start_.driver_grace_ms));
  end_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) TerminateOrphans();
  });
}

void Agent::TerminateOrphans() {
  SignalAll(SIGTERM);
  Duration grace =
      std::min<Duration>(std::chrono::milliseconds(start_.terminate_grace_ms), kOrphanGrace);
  end_timer_.expires_after(grace);
  end_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    KillAll();
    End(kAgentFailed);
  });
}

void Agent::EndOrphanIfAlone() {
  bool running = std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.running; });
  if (running) return;
  if (!host_.Reap()) KillAll();
  End(kAgentFailed);
}

void Agent::OnWardenGone() {
  warden_.Close();
  KillAll();
  RemoveCgroup(options_.job_id);
  End(kAgentFailed);
}

void Agent::End(int code) {
  code_ = code;
  io_.stop();
}

}  // namespace

int RunAgent(AgentOptions options) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    Agent agent(std::move(options));
    return agent.Run();
  } catch (const std::exception& failure) {  // out of descriptors, processes or memory
    LogError(std::string("the agent cannot go on: ") + failure.what());
    return kAgentFailed;
  }
}

}  // namespace hvd
