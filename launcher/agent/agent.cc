#include "launcher/agent/agent.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "discovery/this_machine.h"
#include "launcher/agent/binding.h"
#include "launcher/agent/connectivity_probe.h"
#include "launcher/agent/examine_child.h"
#include "launcher/agent/find_command.h"
#include "launcher/agent/held_port.h"
#include "launcher/agent/host_identity.h"
#include "launcher/agent/pair_probe.h"
#include "launcher/agent/pulse.h"
#include "launcher/agent/resume_listener.h"
#include "launcher/agent/stdin_feeder.h"
#include "launcher/bundle/side_command.h"
#include "launcher/environment/worker_env.h"
#include "launcher/generation/host_generations.h"
#include "launcher/jobs/job_id.h"
#include "launcher/jobs/job_place.h"
#include "launcher/output/lines.h"
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
#include "runtime/net/mesh_address.h"
#include "runtime/net/stream.h"
#include "runtime/net/trouble.h"

namespace hvd {
namespace {

constexpr Duration kKillLimit = std::chrono::seconds(3);
// Without its driver a job ends quickly, whatever grace it was given.
constexpr Duration kOrphanGrace = std::chrono::seconds(2);
// A job that is ending anyway waits no longer for a driver that may come back.
constexpr Duration kEndingGrace = std::chrono::seconds(5);
// What workers may print while there is no connection; then they wait.
constexpr size_t kMostHeldBytes = 1024 * 1024;
constexpr size_t kMaxLogPiece = kMaxFramePayload - kOutputOverhead;
constexpr int kAgentFailed = 1;
// A script imports and loads before it listens; one that never does is not watched for ever.
constexpr Duration kMasterWatch = std::chrono::minutes(2);

// The process at the other end of a unix socket; our own when the kernel does not show it to us.
int32_t PeerOf(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  bool known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0;
  return known ? peer.pid : ::getpid();
}

// How long the end of a line is waited for that a person may have to answer: a prompt.
constexpr Duration kPromptWait = std::chrono::milliseconds(50);

int64_t Nanoseconds(TimePoint t) { return t.time_since_epoch().count(); }

class Agent final : public ProcessObserver, public HostGenerationsObserver {
 public:
  explicit Agent(AgentOptions options);

  int Run();

  // ProcessObserver; a worker's number is its slot.
  void OnOutput(uint32_t slot, OutputStream stream, std::string_view bytes) override;
  void OnOutputEnd(uint32_t slot, OutputStream stream) override;
  void OnExit(uint32_t slot, ProcessEnd end, TimePoint noticed) override;

  // HostGenerationsObserver.
  Status OnHello(const LinkHello&) override { return Status::Ok(); }
  void OnJoined(uint32_t slot) override { Send(RankJoined{RankOf(slot)}); }
  void OnLeft(uint32_t slot, const LeftRank& left) override;
  void OnLost(uint32_t slot, const LostRank& lost) override;
  void OnLinkClosed(uint32_t) override {}
  void OnLayout(uint32_t, std::vector<RankRun>) override {}  // the driver knows
  void OnPut(const LinkPut& put) override;
  void OnWanted(const LinkGet& get) override { Send(WantKey{get.generation, get.key}); }

 private:
  struct Slot {
    int pid = 0;
    bool running = false;
    LineBuffer lines[2];
    LastLines last_stderr;
    std::optional<WorkerExited> exited;
  };

  // The stream and its connection.
  void Carry(UniqueFd input, UniqueFd output);
  void Disconnect();
  std::string Title() const;
  void OnConnectionLost(const std::string& reason);
  void OnReturn(ReturnedStream stream);
  void OnBytes(std::string_view bytes);
  void Handle(ToAgent message);
  void Send(const ToDriver& message);
  void SendDirectly(const ToDriver& message);
  void Flush();
  void ScheduleTick();
  void EverySecond();
  void OpenMasterPort();
  void WatchMasterPort();
  void SendPulseToWarden();
  bool AnyRankDying() const;
  void HeedSilenceLimit();
  void LookForDriver();

  // What the driver asks for.
  void On(StartJob start);
  void On(AwaitDriver await);
  void On(const BeginGeneration& message);
  void On(const BreakGeneration& message);
  void On(const SignalWorkers& message);
  void On(const FinishJob& message);
  void On(const WorkerInput& message);
  void On(const KeyValue& message);
  void On(ProbeConnectivity question);
  void On(const TreeDown& message) { tree_.Down(message); }
  void On(const Resend&);
  void On(const LookAtCommand& question);
  void On(const AskTime& question);
  void On(const ExamineHost& question);
  void On(OpenProbe question);
  void On(const MeasurePair& question);
  void On(const UseRelay& use) { relay_.Use(use); }
  void On(const RelayOpen& message) { relay_.Take(message); }
  void On(const RelayData& message) { relay_.Take(message); }
  void On(const RelayClose& message) { relay_.Take(message); }
  void On(const RelayCredit& message) { relay_.Take(message); }

  void ReportStopped(uint64_t generation);
  void ShareCores();
  bool ReadsInput(uint32_t slot) const;
  void ShowPromptSoon(uint32_t slot);
  void ShowPrompts();
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
  std::unique_ptr<BytePump> pump_;
  UniqueFd client_;  // who brought the connection, if it is not the first
  BytePump warden_;
  UniqueFd cgroup_;  // invalid: workers have none of their own
  LocalProcessHost host_;
  StdinFeeder feeder_;
  asio::steady_timer tick_timer_, end_timer_, second_timer_, prompt_timer_;
  bool prompt_due_ = false;
  std::optional<HostGenerations> generations_;
  StartJob start_;
  std::string link_address_;
  std::string job_place_;
  std::string interface_;  // that has the address proven to the other hosts
  bool started_ = false;
  std::vector<Slot> slots_;
  uint32_t host_cores_ = 0;
  std::vector<std::vector<int>> bound_;  // by slot
  std::vector<uint32_t> core_shares_;
  OomCounters oom_;
  OomBaseline oom_baseline_{oom_.Kills()};
  bool killing_ = false;
  bool finishing_ = false, said_gone_ = false, orphaned_ = false;
  bool away_ = false;      // without a connection, and the driver may come back
  size_t held_bytes_ = 0;  // printed since then
  bool ending_ = false;    // the driver has begun to end the job
  bool paused_ = false;
  int code_ = kAgentFailed;
  HeldPort master_port_{/*everywhere=*/true};
  std::optional<TimePoint> master_watch_;  // until when rank 0 may begin to listen at MASTER_PORT
  TreeMember tree_;
  std::unique_ptr<ConnectivityProbe> proof_;  // while the hosts look for each other
  Duration driver_grace_{};                   // for which a lost driver is waited for
  const std::string door_address_ = MakeListenerAddress();
  std::unique_ptr<ResumeListener> door_;  // once the driver has said that it may come back
  std::unique_ptr<ExamineChild> exam_;
  std::unique_ptr<PairProbe> probe_;
  RelayEnd relay_;
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
      warden_(io_, std::move(options_.warden.alive), UniqueFd(),
              {[](std::string_view) {}, [] {}, [this] { OnWardenGone(); }}),
      cgroup_(OpenCgroup(options_.job_id)),
      host_(io_, *this, cgroup_.get()),
      feeder_(io_, [this](uint64_t bytes) { Send(InputTaken{bytes}); }),
      tick_timer_(io_),
      end_timer_(io_),
      second_timer_(io_),
      prompt_timer_(io_),
      tree_(io_, {[this](const ToDriver& message) { SendDirectly(message); },
                  [this](ToAgent message) { Handle(std::move(message)); }}),
      relay_(io_, [this](const ToDriver& message) { SendDirectly(message); }) {}

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
  Carry(std::move(options_.input), std::move(options_.output));
  Send(AgentReady{::getpid(), ::getppid(), MeansInForce(), HVD_VERSION, master_port_.port(),
                  HostIdentity(), DefaultSlots()});
  Send(AgentPath{options_.executable, door_address_});
  ScheduleTick();
  EverySecond();
  io_.run();
  return code_;
}

// ---- the stream and its connection

void Agent::Carry(UniqueFd input, UniqueFd output) {
  // Of a former connection nothing is heard any more.
  auto current = std::make_shared<BytePump*>(nullptr);
  auto if_current = [this, current](auto&& then) {
    if (*current == pump_.get()) then();
  };
  pump_ = std::make_unique<BytePump>(
      io_, std::move(input), std::move(output),
      BytePumpHandlers{
          [this, if_current](std::string_view bytes) { if_current([&] { OnBytes(bytes); }); },
          [this, if_current] { if_current([this] { Flush(); }); },
          [this, if_current] {
            if_current([this] { OnConnectionLost("the stream to the driver ended"); });
          }});
  *current = pump_.get();
}

void Agent::Disconnect() {
  stream_.Detach();
  client_.Reset();
  if (!pump_) return;
  pump_->Close();
  // We may be in one of its handlers, and another may be in the queue.
  asio::post(io_, [old = std::shared_ptr<BytePump>(std::move(pump_))] {});
}

std::string Agent::Title() const {
  return started_ ? "agent on host " + start_.host + ": " : "agent: ";
}

// The workers go on; what they print is held. Nothing else changes until the grace is over.
void Agent::OnConnectionLost(const std::string& reason) {
  Disconnect();
  if (!door_ || orphaned_) return OnDriverGone(reason);
  if (std::exchange(away_, true)) return;
  held_bytes_ = 0;
  Flush();
  Duration grace = driver_grace_;
  if (ending_) grace = std::min(grace, kEndingGrace);
  LogWarning(Title() + reason + "; waiting for it to come back");
  end_timer_.expires_after(grace);
  end_timer_.async_wait([this](const asio::error_code& error) {
    if (!error && away_) OnDriverGone("the driver did not come back");
  });
}

// Perhaps before the end of the former connection has shown here.
void Agent::OnReturn(ReturnedStream stream) {
  if (orphaned_) return;
  Disconnect();
  away_ = false;
  end_timer_.cancel();
  client_ = std::move(stream.client);
  stream_.Attach(SteadyNow());
  Carry(std::move(stream.input), std::move(stream.output));
  Flush();
}

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
    Disconnect();
    return OnDriverGone("the stream to the driver is damaged: " + status.message());
  }
  Flush();
  if (said_gone_ && stream_.AllAcknowledged()) End(0);
}

void Agent::Handle(ToAgent message) {
  std::visit([this](auto& m) { On(std::move(m)); }, message);
}

void Agent::Send(const ToDriver& message) {
  if (!tree_.Up(message)) SendDirectly(message);
}

void Agent::SendDirectly(const ToDriver& message) {
  if (IsBulk(message)) {
    stream_.SendBulk(EncodeToDriver(message));
  } else {
    stream_.SendControl(EncodeToDriver(message));
  }
  Flush();
}

void Agent::Flush() {
  while (pump_) {
    std::string_view out = stream_.Outgoing();
    if (out.empty()) break;
    size_t wanted = out.size();
    size_t written = pump_->Write(out);
    stream_.Consume(written);
    if (written < wanted) break;
  }
  bool room = orphaned_ || (away_ && held_bytes_ < kMostHeldBytes);
  host_.HoldOutput(stream_.LogsHeld() && !room);
  FinishIfSilent();
}

void Agent::ScheduleTick() {
  tick_timer_.expires_at(stream_.NextTick());
  tick_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    stream_.Tick(SteadyNow());
    tree_.Tick(SteadyNow());
    Flush();
    LookForDriver();
    ScheduleTick();
  });
}

void Agent::EverySecond() {
  SendPulseToWarden();
  oom_baseline_.Look(oom_.Kills(), [this] { return AnyRankDying(); });
  WatchMasterPort();
  second_timer_.expires_after(kPulseEvery);
  second_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) EverySecond();
  });
}

// The port becomes free for servers, and the kernel would give it to one of another user as well:
// that one would hear all that the ranks mean for rank 0.
void Agent::OpenMasterPort() {
  master_port_.LetServersListen();
  const auto& slots = start_.slots;
  const bool is_here = std::ranges::any_of(slots, [](const Placement& p) { return p.rank == 0; });
  const auto& given = start_.given_environment;
  const bool is_ours = std::ranges::none_of(
      given, [](const std::string& entry) { return entry.starts_with("MASTER_PORT="); });
  if (is_here && is_ours && start_.master_port != 0) master_watch_ = SteadyNow() + kMasterWatch;
}

void Agent::WatchMasterPort() {
  if (!master_watch_) return;
  const std::optional<uid_t> listener = ListenerAt(start_.master_address, start_.master_port);
  if (!listener && SteadyNow() < *master_watch_) return;
  master_watch_.reset();
  if (!listener || *listener == ::geteuid() || *listener == 0) return;
  Send(WorkerNotStarted{0, EADDRINUSE,
                        "port " + std::to_string(start_.master_port) + " of host " + start_.host +
                            ", which MASTER_PORT names, was taken by another user (uid " +
                            std::to_string(*listener) +
                            ") before rank 0 listened there; start the job again, or name another "
                            "port with -x MASTER_PORT=N"});
}

bool Agent::AnyRankDying() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const Slot& slot) { return slot.running && IsDying(slot.pid); });
}

// The warden cannot see the stream, so it is told whose end is the end of the connection.
void Agent::SendPulseToWarden() {
  Duration grace = std::chrono::milliseconds(std::max<int64_t>(start_.driver_grace_ms, 0));
  SendPulse(options_.warden.pulse.get(),
            {client_.valid() ? PeerOf(client_.get()) : 0,
             static_cast<uint32_t>(std::min<int64_t>(grace / kPulseEvery, INT32_MAX))});
}

// A driver that was cut off leaves a stream without an end. One that is stopped with its workers is
// not lost.
void Agent::LookForDriver() {
  if (start_.silence_limit_ms <= 0 || !pump_ || paused_) return;
  Duration limit = std::chrono::milliseconds(start_.silence_limit_ms);
  if (SteadyNow() - stream_.last_heard() < limit) return;
  OnConnectionLost("nothing was heard of the driver for " +
                   std::to_string(start_.silence_limit_ms / 1000) + " s");
}

// ---- starting

void Agent::On(const LookAtCommand& question) {
  Send(CommandSeen{LookForCommand(question.program, question.path, question.directory)});
}

void Agent::On(ProbeConnectivity question) {
  if (proof_ || started_) return;
  const std::string tree_record = tree_.Listen(question);
  proof_ = std::make_unique<ConnectivityProbe>(
      std::move(question),
      ConnectivityProbe::Owner{
          [this](std::string key, std::string value) {
            asio::post(io_,
                       [this, put = PutKey{0, std::move(key), std::move(value)}] { Send(put); });
          },
          [this](std::string key) {
            asio::post(io_, [this, want = WantKey{0, std::move(key)}] { Send(want); });
          },
          [this, tree_record](ConnectivityProbed answer) {
            answer.tree_record = tree_record;
            asio::post(io_, [this, answer = std::move(answer)] { Send(answer); });
          }});
}

void Agent::On(StartJob start) {
  if (started_ || start.argv.empty()) return;
  started_ = true;
  proof_.reset();  // workers are spawned by a process of one thread
  probe_.reset();
  link_address_ = MakeLinkAddress(options_.job_id);
  if (std::optional<JobPlace> place = PlaceHere()) job_place_ = JobPlaceText(*place);
  start_ = std::move(start);
  slots_.resize(start_.slots.size());
  if (!start_.listen_addresses.empty()) interface_ = InterfaceOf(start_.listen_addresses.front());
  OpenMasterPort();
  stream_.set_epoch(0);
  tree_.Join(start_);
  HeedSilenceLimit();
  ShareCores();
  if (Result<std::vector<RankPlace>> places = PlacesOf(start_.layout, start_.size); places.ok())
    relay_.SetWorld(start_.job_key, std::move(*places));
  generations_.emplace(io_, *this, WorldOf(start_), start_.job_key,
                       "; see the last lines of hvdrun's output for the reason");
  Status listening = FaultAsked("listen") ? Internal("no socket could be made for the workers")
                                          : generations_->links().Listen(link_address_);
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (listening.ok()) {
      StartWorker(slot);
    } else {
      Send(WorkerNotStarted{RankOf(slot), EIO, listening.message()});
    }
  }
}

// Long before the job starts: one that waits for slow hosts may lose a connection, too.
void Agent::On(AwaitDriver await) {
  if (door_ || await.key.empty() || await.grace_ms <= 0) return;
  driver_grace_ = std::chrono::milliseconds(await.grace_ms);
  door_ = std::make_unique<ResumeListener>(
      io_, std::move(await.key), [this](ReturnedStream stream) { OnReturn(std::move(stream)); });
  Status open = door_->Open(door_address_);
  if (open.ok()) return;
  door_.reset();
  Send(AgentNote{"a lost connection cannot be made anew: " + open.message()});
}

// The driver listens for as long as we do.
void Agent::HeedSilenceLimit() {
  if (start_.silence_limit_ms <= 0) return;
  stream_.set_heartbeat(std::min<Duration>(StreamOptions().heartbeat,
                                           std::chrono::milliseconds(start_.silence_limit_ms / 5)));
  ScheduleTick();
}

// ---- what hvdrun doctor asks

void Agent::On(const AskTime& question) {
  constexpr int64_t kFaultNs = 100'000'000'000;
  int64_t fault = FaultAsked("clock-ahead") ? kFaultNs : 0;
  Send(TimeTold{question.number, WallNanoseconds() + fault, Nanoseconds(SteadyNow())});
}

void Agent::On(const ExamineHost& question) {
  if (exam_ || started_) return;
  start_.silence_limit_ms = question.silence_limit_ms;
  HeedSilenceLimit();
  SpawnDescriptors descriptors;
  descriptors.cgroup_fd = cgroup_.get();
  descriptors.descriptor_limit = host_.child_descriptor_limit();
  exam_ = std::make_unique<ExamineChild>(io_, question, options_.job_id, descriptors,
                                         [this](const HostExam& exam) { Send(exam); });
}

void Agent::On(OpenProbe question) {
  if (probe_ || started_) return;
  probe_ = std::make_unique<PairProbe>(
      std::move(question),
      PairProbe::Owner{[this](std::string key, std::string value) {
                         asio::post(io_, [this, put = PutKey{PairProbe::kGeneration, std::move(key),
                                                             std::move(value)}] { Send(put); });
                       },
                       [this](std::string key) {
                         asio::post(io_, [this, want = WantKey{PairProbe::kGeneration,
                                                               std::move(key)}] { Send(want); });
                       },
                       [this](PairMeasured answer) {
                         asio::post(io_, [this, answer = std::move(answer)] { Send(answer); });
                       }});
}

void Agent::On(const MeasurePair& question) {
  if (probe_) probe_->Measure(question);
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
      Send(AgentNote{"workers share " + std::to_string(host_cores_) + " cores; " + entry});
  }
}

bool Agent::ReadsInput(uint32_t slot) const {
  return start_.stdin_to == StdinTo::kAll ||
         (start_.stdin_to == StdinTo::kRank0 && RankOf(slot) == 0);
}

void Agent::StartWorker(uint32_t slot) {
  WorkerLink link{link_address_, options_.job_id, job_place_, interface_};
  WorkerCores cores{host_cores_, core_shares_[slot]};
  SpawnRequest request{
      start_.argv, WorkerEnvironment(start_, slot, link, PathsBeside(options_.executable), cores),
      start_.directory, bound_[slot]};
  UniqueFd input;
  if (ReadsInput(slot)) {
    input = feeder_.AddPipe();
    if (!input.valid())
      return Send(WorkerNotStarted{RankOf(slot), EMFILE, "no pipe could be made for its stdin"});
    request.stdin_fd = input.get();
  }
  SpawnOutcome outcome = host_.Spawn(slot, request);
  if (outcome.pid == 0) {
    return Send(WorkerNotStarted{RankOf(slot), outcome.error,
                                 outcome.reason + " (host " + start_.host + ")"});
  }
  slots_[slot].pid = outcome.pid;
  slots_[slot].running = true;
  if (!bound_[slot].empty())
    Send(AgentNote{"rank " + std::to_string(RankOf(slot)) + " is kept on CPUs " +
                   CpuListText(bound_[slot])});
  Send(WorkerStarted{RankOf(slot), outcome.pid});
}

// ---- output and exits

void Agent::OnOutput(uint32_t slot, OutputStream stream, std::string_view bytes) {
  if (stream == OutputStream::kStderr) slots_[slot].last_stderr.Add(bytes);
  LineBuffer::Ready ready = slots_[slot].lines[static_cast<int>(stream)].Add(bytes);
  SendOutput(slot, stream, ready.held, ready.bytes);
  ShowPromptSoon(slot);
}

// A rank that has the terminal may wait for an answer: `(Pdb) `, input("...").
void Agent::ShowPromptSoon(uint32_t slot) {
  if (start_.stdin_terminal == 0 || !ReadsInput(slot) || prompt_due_) return;
  const auto& lines = slots_[slot].lines;
  if (lines[0].empty() && lines[1].empty()) return;
  prompt_due_ = true;
  prompt_timer_.expires_after(kPromptWait);
  prompt_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) ShowPrompts();
  });
}

void Agent::ShowPrompts() {
  prompt_due_ = false;
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (!ReadsInput(slot)) continue;
    for (OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr})
      SendOutput(slot, stream, slots_[slot].lines[static_cast<int>(stream)].Flush(), {});
  }
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
    if (away_) held_bytes_ += head.size() + tail.size();
    stream_.SendLog(EncodeOutput(RankOf(slot), stream, head, tail));
    first.remove_prefix(head.size());
    second.remove_prefix(tail.size());
  }
  Flush();
}

void Agent::OnExit(uint32_t slot, ProcessEnd end, TimePoint noticed) {
  Slot& s = slots_[slot];
  s.running = false;
  generations_->NoteExit(slot, s.pid);
  bool killed = end.by_signal && end.value == SIGKILL && !killing_;
  bool out_of_memory = killed && oom_baseline_.Take(oom_.Kills());
  s.exited = WorkerExited{RankOf(slot),         s.pid,        end, Nanoseconds(noticed),
                          s.last_stderr.Text(), out_of_memory};
  Send(*s.exited);
  FinishIfSilent();
  if (orphaned_) EndOrphanIfAlone();
}

void Agent::On(const Resend&) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].pid != 0) Send(WorkerStarted{RankOf(slot), slots_[slot].pid});
    if (slots_[slot].exited) Send(*slots_[slot].exited);
  }
}

// ---- links and generations

void Agent::OnLeft(uint32_t slot, const LeftRank& left) {
  Send(RankLeft{RankOf(slot), left.generation, Nanoseconds(left.since), left.had_failed});
}

void Agent::OnLost(uint32_t slot, const LostRank& lost) {
  Send(RankLost{RankOf(slot), lost.pid, lost.generation, Nanoseconds(lost.noticed), lost.reason,
                lost.doing, lost.had_failed});
}

void Agent::OnPut(const LinkPut& put) {
  relay_.NoteEntry(put.generation, put.key, put.value);
  Send(PutKey{put.generation, put.key, put.value});
}

// Before any of them is asked to end, which continues them.
void Agent::ReportStopped(uint64_t generation) {
  for (const ProcessInfo& process : ListProcesses()) {
    if (process.state != 'T' && process.state != 't') continue;
    for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
      if (!slots_[slot].running || slots_[slot].pid != process.pid) continue;
      TroubleEntry entry = EncodeTrouble(RankStopped{RankOf(slot)});
      Send(PutKey{generation, std::move(entry.key), std::move(entry.value)});
    }
  }
}

void Agent::On(const BeginGeneration& message) {
  stream_.set_epoch(message.generation);
  relay_.BeginGeneration(message.generation);
  if (generations_)
    (void)generations_->Begin(message.generation);  // whoever waits has been told why not
}

void Agent::On(const BreakGeneration& message) {
  if (generations_) generations_->Break(message.generation, message.reason);
  if (message.generation != 0 && !paused_) ReportStopped(message.generation);
}

void Agent::On(const KeyValue& message) {
  if (proof_ && message.generation == 0) proof_->GiveValue(message.key, message.value);
  if (probe_ && message.generation == PairProbe::kGeneration)
    probe_->GiveValue(message.key, message.value);
  if (!generations_) return;
  generations_->GiveValue(message.generation, message.key,
                          relay_.ValueFor(message.generation, message.key, message.value));
}

// ---- ending

void Agent::On(const SignalWorkers& message) {
  if (message.signal == SIGSTOP || message.signal == SIGCONT) paused_ = message.signal == SIGSTOP;
  if (message.signal != SIGSTOP && message.signal != SIGCONT) ending_ = true;
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
  KillEverything(options_.job_id, {.processes = {::getppid()}}, kKillLimit,
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
  tree_.Close();
  if (generations_) generations_->DropPage();
  Send(AgentGone{});
}

void Agent::OnDriverGone(const std::string& reason) {
  Disconnect();
  if (said_gone_) return End(0);
  if (orphaned_) return;
  orphaned_ = true;
  Flush();  // nothing is held any more
  LogWarning(Title() + reason + "; ending the workers");
  if (host_.Reap()) return End(kAgentFailed);
  if (door_ || start_.driver_grace_ms <= 0) return TerminateOrphans();  // it was waited for
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
