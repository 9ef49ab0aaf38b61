#include "launcher/agent/agent.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "discovery/this_machine.h"
#include "launcher/agent/binding.h"
#include "launcher/agent/driver_connection.h"
#include "launcher/agent/held_port.h"
#include "launcher/agent/host_identity.h"
#include "launcher/agent/host_questions.h"
#include "launcher/agent/pulse.h"
#include "launcher/agent/rank_examiner.h"
#include "launcher/agent/stop_signals.h"
#include "launcher/agent/trace_collector.h"
#include "launcher/agent/worker_set.h"
#include "launcher/bundle/side_command.h"
#include "launcher/environment/worker_env.h"
#include "launcher/generation/host_generations.h"
#include "launcher/jobs/job_id.h"
#include "launcher/jobs/job_place.h"
#include "launcher/process/byte_pump.h"
#include "launcher/process/cgroup.h"
#include "launcher/process/fault.h"
#include "launcher/process/local_process_host.h"
#include "launcher/process/one_process.h"
#include "launcher/process/oom.h"
#include "launcher/process/process_tree.h"
#include "launcher/process/uncaught.h"
#include "launcher/relay/relay_end.h"
#include "launcher/tree/tree_member.h"
#include "launcher/wire/messages.h"
#include "runtime/base/log.h"
#include "runtime/net/mesh/mesh_address.h"
#include "runtime/net/trouble.h"

namespace hvd {
namespace {

constexpr Duration kKillLimit = std::chrono::seconds(3);
// Without its driver a job ends quickly, whatever grace it was given.
constexpr Duration kOrphanGrace = std::chrono::seconds(2);
constexpr int kAgentFailed = 1;
// A script imports and loads before it listens; one that never does is not watched for ever.
constexpr Duration kMasterWatch = std::chrono::minutes(2);

int64_t Nanoseconds(TimePoint t) { return t.time_since_epoch().count(); }

// Reports to the driver what happens to the ranks of this host in their generations.
class GenerationReports final : public HostGenerationsObserver {
 public:
  GenerationReports(const WorkerSet& workers, RelayEnd& relay,
                    std::function<void(const ToDriver&)> send)
      : workers_(workers), relay_(relay), send_(std::move(send)) {}

  Status OnHello(const LinkHello&) override { return Status::Ok(); }
  void OnJoined(uint32_t slot) override { send_(RankJoined{workers_.NumberOf(slot)}); }
  void OnLeft(uint32_t slot, const LeftRank& left) override {
    send_(RankLeft{workers_.NumberOf(slot), left.generation, Nanoseconds(left.since),
                   left.had_failed});
  }
  void OnLost(uint32_t slot, const LostRank& lost) override {
    send_(RankLost{workers_.NumberOf(slot), lost.pid, lost.generation, Nanoseconds(lost.noticed),
                   lost.reason, lost.doing, lost.had_failed});
  }
  void OnLinkClosed(uint32_t) override {}
  void OnLayout(uint32_t, std::vector<RankRun>) override {}  // the driver knows
  void OnPut(const LinkPut& put) override {
    relay_.NoteEntry(put.generation, put.key, put.value);
    send_(PutKey{put.generation, put.key, put.value});
  }
  void OnWanted(const LinkGet& get) override { send_(WantKey{get.generation, get.key}); }

 private:
  const WorkerSet& workers_;
  RelayEnd& relay_;
  const std::function<void(const ToDriver&)> send_;
};

// The port for MASTER_PORT, held until rank 0 may listen there and watched until it does.
class MasterPort {
 public:
  uint32_t port() const { return port_.port(); }
  // From now on servers may listen, of any user: the kernel makes no difference. One of another
  // user would receive what the ranks send to rank 0, so the port is watched if rank 0 is here.
  void Open(const StartJob& start, TimePoint now) {
    port_.LetServersListen();
    const bool is_here =
        std::ranges::any_of(start.slots, [](const Placement& p) { return p.rank == 0; });
    const bool is_ours = std::ranges::none_of(
        start.given_environment,
        [](const std::string& entry) { return entry.starts_with("MASTER_PORT="); });
    if (is_here && is_ours && start.master_port != 0) watched_until_ = now + kMasterWatch;
  }
  // Call now and then; what to report when another user has the port.
  std::optional<WorkerNotStarted> Look(const StartJob& start, TimePoint now) {
    if (!watched_until_) return std::nullopt;
    const std::optional<uid_t> listener = ListenerAt(start.master_address, start.master_port);
    if (!listener && now < *watched_until_) return std::nullopt;
    watched_until_.reset();
    if (!listener || *listener == ::geteuid() || *listener == 0) return std::nullopt;
    return WorkerNotStarted{
        0, EADDRINUSE,
        "port " + std::to_string(start.master_port) + " of host " + start.host +
            ", which MASTER_PORT names, was taken by another user (uid " +
            std::to_string(*listener) +
            ") before rank 0 listened there; start the job again, or name another port with -x "
            "MASTER_PORT=N"};
  }

 private:
  HeldPort port_{/*everywhere=*/true};
  std::optional<TimePoint> watched_until_;
};

class Agent final : public DriverConnectionOwner, public WorkerSetOwner {
 public:
  explicit Agent(AgentOptions options);

  int Run();

  // DriverConnectionOwner.
  void OnDriverMessage(ToAgent message) override {
    std::visit([this](auto& m) { On(std::move(m)); }, message);
  }
  void OnDriverMessagesOver() override {
    if (said_gone_ && driver_.AllAcknowledged()) End(0);
  }
  void OnDriverFlushed() override;
  void OnDriverTick() override { tree_.Tick(SteadyNow()); }
  void OnDriverAway(const std::string& reason) override {
    LogWarning(Title() + reason + "; waiting for it to come back");
  }
  void OnDriverGone(const std::string& reason) override;

  // WorkerSetOwner.
  void Send(const ToDriver& message) override {
    if (!tree_.Up(message)) driver_.Send(message);
  }
  void SendOutput(uint32_t rank, OutputStream stream, std::string_view first,
                  std::string_view second) override {
    driver_.SendOutput(rank, stream, first, second);
  }
  uint64_t CommitsOf(uint32_t slot) const override { return generations_->CommitsOf(slot); }
  bool OnWorkerExit(uint32_t slot, int pid, bool killed) override;
  void OnWorkerOver() override;

 private:
  const StartJob& start() const { return workers_.start(); }
  std::string Title() const;
  void EverySecond();
  void SendPulseToWarden();

  // What the driver asks for. Messages without an overload of their own are the relay's.
  template <typename Message>
  void On(const Message& message) {
    relay_.Take(message);
  }
  void On(const UseRelay& use) { relay_.Use(use); }
  void On(StartJob start);
  void StartWorkers();
  void On(AwaitDriver await);
  void On(const BeginGeneration& message);
  void On(const BreakGeneration& message);
  void On(const AddWorkers& more);
  void On(const DismissWorker& message);
  void On(const HoldCommits& message);
  void On(const ActAtCommit& message);
  void On(const SignalWorkers& message);
  void On(const SignalWorker& message);
  void On(const AskMemory& message);
  void On(const FinishJob& message);
  void On(const WorkerInput& message) { workers_.FeedStdin(message.bytes); }
  void On(const KeyValue& message);
  void On(const TreeDown& message) { tree_.Down(message); }
  void On(const Resend&) { workers_.Resend(); }
  void On(const LookAtCommand& question) { questions_.Answer(question); }
  void On(const AskTime& question) { questions_.Answer(question); }
  void On(const TraceTaken& taken) { traces_.Taken(taken.bytes); }
  void On(const MeasurePair& question) { questions_.Answer(question); }
  void On(const ExamineRanks& question) { examiner_.Answer(question); }
  void On(ProbeConnectivity question);
  void On(const ExamineHost& question);
  void On(OpenProbe question);

  std::string MeansInForce() const;
  std::vector<uint32_t> UseMembers(const BeginGeneration& message);
  void TraceGeneration(const std::vector<uint32_t>& slots);
  void SignalAll(int signal);
  bool AskToStop(int signal);
  void FinishIfSilent();
  void KillAll();
  void TerminateOrphans();
  void OnWardenGone();
  void End(int code);

  AgentOptions options_;
  asio::io_context io_{1};
  DriverConnection driver_;
  BytePump warden_;
  UniqueFd cgroup_;  // invalid: workers have none of their own
  WorkerSet workers_;
  LocalProcessHost host_;
  asio::steady_timer end_timer_, second_timer_;
  GenerationReports reports_;
  std::optional<HostGenerations> generations_;
  bool started_ = false;
  OomCounters oom_;
  OomBaseline oom_baseline_{oom_.Kills()};
  bool finishing_ = false, said_gone_ = false, orphaned_ = false;
  bool paused_ = false;
  int code_ = kAgentFailed;
  MasterPort master_port_;
  TreeMember tree_;
  RelayEnd relay_;
  HostQuestions questions_;
  TraceCollector traces_;
  StopSignals stop_signals_;
  SteadyClock clock_;
  RankExaminer examiner_;
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
  world.elastic = start.elastic != 0;
  return world;
}

// Where the workers of an elastic job listen for those of other hosts: what reaches them is found
// out when they connect, since hosts come and go.
std::vector<std::string> ListenAddresses(const StartJob& start, bool one_machine) {
  if (one_machine) return {"127.0.0.1"};
  Result<std::vector<std::string>> addresses = AddressesOfInterfaces(start.interfaces);
  return addresses.ok() ? *addresses : std::vector<std::string>{};
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
      reports_(workers_, relay_, [this](const ToDriver& message) { Send(message); }),
      tree_(io_, {[this](const ToDriver& message) { driver_.Send(message); },
                  [this](ToAgent message) { OnDriverMessage(std::move(message)); }}),
      relay_(io_, [this](const ToDriver& message) { driver_.Send(message); }),
      questions_(io_, [this](const ToDriver& message) { Send(message); }),
      traces_(
          io_, [this](const ToDriver& message) { driver_.Send(message); },
          [this] { FinishIfSilent(); }),
      stop_signals_(io_, [this](int signal) { return AskToStop(signal); }),
      examiner_(io_, clock_, [this](const ToDriver& message) { Send(message); }) {}

// For --verbose: how this agent makes sure that nothing is left behind.
std::string Agent::MeansInForce() const {
  std::string means = cgroup_.valid() ? "cgroup of its own, " : "";
  means += "subreaper, sessions, parent-death signal, job id in /proc/PID/environ";
  if (HavePidfd()) means += ", pidfd";
  return means;
}

int Agent::Run() {
  BecomeSubreaper();
  driver_.Open(std::move(options_.input), std::move(options_.output));
  Send(AgentReady{::getpid(), ::getppid(), MeansInForce(), HVD_VERSION, master_port_.port(),
                  HostIdentity(), DefaultSlots()});
  Send(AgentPath{options_.executable, driver_.listener_address()});
  EverySecond();
  io_.run();
  return code_;
}

std::string Agent::Title() const {
  return started_ ? "agent on host " + start().host + ": " : "agent: ";
}

void Agent::OnDriverFlushed() {
  host_.HoldOutput(driver_.HoldsOutput());
  FinishIfSilent();
}

void Agent::EverySecond() {
  SendPulseToWarden();
  oom_baseline_.Look(oom_.Kills(), [this] { return workers_.AnyDying(IsDying); });
  if (auto taken = master_port_.Look(start(), SteadyNow())) Send(*taken);
  second_timer_.expires_after(kPulseEvery);
  second_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) EverySecond();
  });
}

// The warden cannot see the stream: the pulse names the process whose end is the end of it.
void Agent::SendPulseToWarden() {
  Duration grace = std::chrono::milliseconds(std::max<int64_t>(start().driver_grace_ms, 0));
  SendPulse(options_.warden.pulse.get(),
            {driver_.HolderPid(),
             static_cast<uint32_t>(std::min<int64_t>(grace / kPulseEvery, INT32_MAX))});
}

// ---- starting

void Agent::On(ProbeConnectivity question) {
  if (questions_.probing() || started_) return;
  std::string tree_record = tree_.Listen(question);
  questions_.Answer(std::move(question), std::move(tree_record));
}

void Agent::On(const ExamineHost& question) {
  if (questions_.examining() || started_) return;
  driver_.SetSilenceLimit(std::chrono::milliseconds(question.silence_limit_ms));
  SpawnDescriptors descriptors;
  descriptors.cgroup_fd = cgroup_.get();
  descriptors.descriptor_limit = host_.child_descriptor_limit();
  questions_.Answer(question, options_.job_id, descriptors);
}

void Agent::On(OpenProbe question) {
  if (!started_) questions_.Answer(std::move(question));
}

void Agent::On(StartJob start) {
  if (started_ || start.argv.empty()) return;
  started_ = true;
  questions_.StopProbes();  // workers are spawned by a process of one thread
  std::vector<Cpu> cpus = PartOfCpus(AllowedCpus(), start.machine_part, start.machine_parts);
  master_port_.Open(start, SteadyNow());
  driver_.set_generation(0);
  tree_.Join(start);
  driver_.SetSilenceLimit(std::chrono::milliseconds(start.silence_limit_ms));
  if (start.elastic != 0) stop_signals_.Open();
  workers_.Prepare(std::move(start), std::move(cpus));
  StartWorkers();
}

void Agent::StartWorkers() {
  const StartJob& job = start();
  traces_.Begin(job.trace);
  if (Result<std::vector<RankPlace>> places = PlacesOf(job.layout, job.size); places.ok())
    relay_.SetWorld(job.job_key, std::move(*places));
  generations_.emplace(io_, reports_, WorldOf(job), job.job_key,
                       "; see the last lines of hvdrun's output for the reason");
  examiner_.Watch(*generations_);
  WorkerLink link{MakeLinkAddress(options_.job_id), options_.job_id};
  if (std::optional<JobPlace> place = PlaceHere()) link.job_place = JobPlaceText(*place);
  if (!job.listen_addresses.empty()) link.interface = InterfaceOf(job.listen_addresses.front());
  Status listening = FaultAsked("listen") ? Internal("no socket could be made for the workers")
                                          : generations_->links().Listen(link.agent_address);
  if (!listening.ok()) return workers_.ReportNotStarted(EIO, listening.message());
  workers_.Start(link, PathsBeside(options_.executable));
}

// Long before the job starts: one that waits for slow hosts may lose a connection, too.
void Agent::On(AwaitDriver await) {
  if (Status open = driver_.Await(std::move(await)); !open.ok())
    Send(AgentNote{"a lost connection cannot be made anew: " + open.message()});
}

// ---- workers and generations

bool Agent::OnWorkerExit(uint32_t slot, int pid, bool killed) {
  generations_->NoteExit(slot, pid);
  return killed && oom_baseline_.Take(oom_.Kills());
}

void Agent::OnWorkerOver() {
  FinishIfSilent();
  if (!orphaned_ || workers_.AnyRunning()) return;
  if (!host_.Reap()) KillAll();
  End(kAgentFailed);
}

void Agent::On(const BeginGeneration& message) {
  driver_.set_generation(message.generation);
  relay_.BeginGeneration(message.generation);
  if (!generations_) return;
  // If it fails, the ranks that wait have been told why.
  std::vector<uint32_t> slots(start().slots.size());
  std::iota(slots.begin(), slots.end(), 0U);
  if (start().elastic != 0) slots = UseMembers(message);
  (void)generations_->Begin(message.generation, slots);
  TraceGeneration(slots);
}

void Agent::TraceGeneration(const std::vector<uint32_t>& slots) {
  const GenerationPage* page = generations_->page();
  if (page == nullptr) return;
  std::vector<TracedRank> ranks;
  for (uint32_t slot : slots) {
    const Placement& place = generations_->world().slots[slot];
    ranks.push_back({workers_.NumberOf(slot), place.rank, place.local_rank});
  }
  traces_.UsePage(page->fd()->get(), page->bytes(), page->generation(), std::move(ranks));
}

// Returns the slots of the members.
std::vector<uint32_t> Agent::UseMembers(const BeginGeneration& message) {
  HostWorld world = generations_->world();
  world.size = message.size;
  world.homogeneous = message.homogeneous != 0;
  world.layout = message.layout;
  world.listen.addresses = ListenAddresses(start(), message.one_machine != 0);
  std::vector<uint32_t> slots;
  for (const Member& member : message.members) {
    const std::optional<uint32_t> slot = workers_.SlotOf(member.worker);
    if (!slot) continue;
    world.slots[*slot] = member.place;
    slots.push_back(*slot);
  }
  generations_->set_world(std::move(world));
  return slots;
}

void Agent::On(const AddWorkers& more) {
  if (!generations_ || more.slots.size() != more.workers.size() || start().elastic == 0) return;
  generations_->AddSlots(more.slots);
  workers_.Add(more);
}

void Agent::On(const DismissWorker& message) {
  const std::optional<uint32_t> slot = workers_.SlotOf(message.rank);
  if (generations_ && slot) generations_->Dismiss(*slot, message.reason);
}

void Agent::On(const HoldCommits& message) {
  if (!generations_) return;
  Send(CommitsHeld{message.generation, generations_->HoldCommits(message.generation)});
}

void Agent::On(const ActAtCommit& message) {
  if (generations_)
    generations_->ActAt(message.generation, message.commit, message.update, message.grace_ms);
}

void Agent::On(const BreakGeneration& message) {
  if (generations_) generations_->Break(message.generation, message.reason);
  if (message.generation == 0 || paused_ || !generations_) return;
  // Before any of them is asked to end, which continues them.
  for (uint32_t slot : workers_.StoppedSlots(ListProcesses())) {
    TroubleEntry entry = EncodeTrouble(RankStopped{generations_->RankOf(slot)});
    Send(PutKey{message.generation, std::move(entry.key), std::move(entry.value)});
  }
}

void Agent::On(const KeyValue& message) {
  questions_.GiveValue(message);
  if (!generations_) return;
  generations_->GiveValue(message.generation, message.key,
                          relay_.ValueFor(message.generation, message.key, message.value));
}

// ---- ending

void Agent::On(const SignalWorkers& message) {
  if (message.signal == SIGSTOP || message.signal == SIGCONT) {
    paused_ = message.signal == SIGSTOP;
    driver_.absence().set_paused(paused_);
  } else {
    driver_.absence().NoteEnding();
  }
  SignalAll(message.signal);
}

// A worker that is ended takes with it what it has started.
void Agent::On(const SignalWorker& message) {
  const std::optional<uint32_t> slot = workers_.SlotOf(message.rank);
  if (!slot || !workers_.running(*slot)) return;
  if (message.signal == SIGKILL) {
    for (const ProcessInfo& process : DescendantsOf(workers_.pid(*slot), ListProcesses()))
      SignalProcess(process, SIGKILL);
  }
  workers_.Signal(*slot, message.signal);
  if (message.signal != SIGKILL) workers_.Signal(*slot, SIGCONT);
}

void Agent::On(const AskMemory& message) {
  const std::optional<uint32_t> slot = workers_.SlotOf(message.rank);
  if (!slot || !workers_.running(*slot)) return;
  if (const std::optional<uint64_t> bytes = ResidentBytes(workers_.pid(*slot)))
    Send(MemoryTold{message.rank, *bytes});
}

void Agent::SignalAll(int signal) {
  if (signal == SIGKILL) return KillAll();
  workers_.Signal(signal);
  if (signal == SIGSTOP || signal == SIGCONT) {
    for (const ProcessInfo& process : DescendantsOf(::getpid(), ListProcesses())) {
      SignalProcess(process, signal);
    }
  } else {
    SignalAll(SIGCONT);  // a process that is stopped gets no other signal
  }
}

// False: no rank here trains, so that none could leave after its step.
bool Agent::AskToStop(int signal) {
  if (!generations_ || !generations_->in_use() || orphaned_) return false;
  Send(StopRequested{signal});
  return true;
}

// Everything below this agent; their exits come in as usual.
void Agent::KillAll() {
  workers_.NoteKilling();
  KillEverything(options_.job_id, {.processes = {::getppid()}}, kKillLimit,
                 [this](pid_t pid, int status) { host_.NoteReaped(pid, status); });
}

void Agent::On(const FinishJob&) {
  finishing_ = true;
  if (!host_.Reap()) KillAll();
  FinishIfSilent();
}

// The workers have ended and all their output is on its way.
void Agent::FinishIfSilent() {
  if (!finishing_ || said_gone_ || driver_.HasOutputToSend() || !host_.OutputEnded()) return;
  if (!traces_.Finish()) return;
  said_gone_ = true;
  tree_.Close();
  if (generations_) generations_->DropPage();
  Send(AgentGone{});
}

void Agent::OnDriverGone(const std::string& reason) {
  if (said_gone_) return End(0);
  if (std::exchange(orphaned_, true)) return;
  driver_.GiveUp();
  driver_.Flush();  // output is not held any more
  LogWarning(Title() + reason + "; ending the workers");
  if (host_.Reap()) return End(kAgentFailed);
  // A driver that may come back has been waited for.
  if (driver_.awaits() || start().driver_grace_ms <= 0) return TerminateOrphans();
  end_timer_.expires_after(std::chrono::milliseconds(start().driver_grace_ms));
  end_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) TerminateOrphans();
  });
}

void Agent::TerminateOrphans() {
  SignalAll(SIGTERM);
  Duration grace =
      std::min<Duration>(std::chrono::milliseconds(start().terminate_grace_ms), kOrphanGrace);
  end_timer_.expires_after(grace);
  end_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    KillAll();
    End(kAgentFailed);
  });
}

void Agent::OnWardenGone() {
  warden_.Close();
  KillAll();
  RemoveCgroup(options_.job_id);
  End(kAgentFailed);
}

void Agent::End(int code) {
  code_ = code;
  tree_.Close();
  io_.stop();
}

}  // namespace

int RunAgent(AgentOptions options) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    Agent agent(std::move(options));
    return agent.Run();
  } catch (const std::exception& failure) {  // out of descriptors, processes or memory
    LogError(std::string("the agent cannot go on: ") + MeaningOf(failure));
    return kAgentFailed;
  }
}

}  // namespace hvd
