#include "runtime/api/session.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "runtime/api/engine_options.h"
#include "runtime/base/log.h"
#include "runtime/base/test_env.h"
#include "runtime/base/text/format.h"
#include "runtime/net/trouble.h"
#include "runtime/segment/alive.h"

namespace hvd {
namespace {

constexpr int64_t kLookAgainNs = 100'000'000;
constexpr int64_t kLookSoonNs = 1'000'000;

// The peers of a dead rank and its agent notice the death in any order.
constexpr Duration kBreaksWithin = std::chrono::seconds(2);

// Why an init failed: kInProgress where only this elastic world is over.
Status InitFailure(const World& world, const Status& given) {
  // A timeout of a wait for another rank is final.
  Status failure = given.code() == Code::kInProgress ? Aborted(given.message()) : given;
  if (!world.ranks_change || failure.code() != Code::kAborted) return failure;
  Doorbell& bell = world.page.rank(world.local_rank).bell;
  const TimePoint deadline = SteadyNow() + kBreaksWithin;
  while (!world.page.broken() && SteadyNow() < deadline)
    SleepOn(bell, bell.word.load(std::memory_order_acquire), kLookSoonNs);
  if (!world.page.broken()) return failure;
  return {Code::kInProgress, "the world broke before it was complete: " + world.page.broken_text()};
}

// The variables were checked before the world was joined.
OneHostSettings OneHost() {
  const Result<OneHostSettings> settings = OneHostSettingsFromEnv();
  return settings.ok() ? *settings : OneHostSettings{};
}

// Null if the job is not tuned.
const TunedSettings* TunedSettingsOf(const World& world) {
  return OneHost().tuned ? &world.page.header().tuned : nullptr;
}

EngineOptions InWorld(EngineOptions options, const World& world, Bootstrap& bootstrap,
                      Backend& devices) {
  options.devices = &devices;
  // Can be switched off to measure its cost.
  if (!GetTestEnv("HVD_TEST_NO_RECORDER"))
    options.recorder = Recorder(world.page.trace(world.local_rank));
  options.stall_board = &world.page.rank(world.local_rank).stalls;
  const OneHostSettings settings = OneHost();
  const WaitPolicy chosen = ChooseWaitPolicy(world.local_size, AllowedCores());
  options.wait = {settings.spins.value_or(chosen.spins), settings.yields.value_or(chosen.yields)};
  options.tuned = TunedSettingsOf(world);
  options.report_ending = [&bootstrap, rank = world.rank](EndCause cause,
                                                          const std::string& reason) {
    const TroubleEntry entry = EncodeTrouble(RankEnding{rank, reason, cause == EndCause::kStall});
    (void)bootstrap.directory().Put(entry.key, entry.value);  // if the agent is still there
  };
  return options;
}

// What is known of a world before its session exists.
BackendFacts FactsOf(const World& world, const MpiWorld* mpi,
                     const std::optional<MpiFacts>& mpi_beside) {
  return {.several_hosts = world.hosts > 1,
          .over_mpi = mpi != nullptr,
          .mpi_beside = mpi_beside.has_value(),
          .mpi_threads = mpi != nullptr ? mpi->threads_supported()
                                        : mpi_beside && mpi_beside->threads_supported};
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Open(Membership member, Bootstrap& bootstrap,
                                               SharedHeap& heap, const EngineOptions& options) {
  Result<std::unique_ptr<InterHostComm>> comm = HostsSession::Connect(
      member.world, FactsOf(member.world, member.mpi.get(), member.mpi_beside), bootstrap,
      member.mpi.get());
  if (!comm.ok()) {
    Status why = InitFailure(member.world, comm.status());
    bootstrap.Leave(member.world.generation, SteadyNow());
    return why;
  }
  return std::unique_ptr<Session>(
      new Session(std::move(member), bootstrap, heap, options, std::move(*comm)));
}

Session::Session(Membership member, Bootstrap& bootstrap, SharedHeap& heap,
                 const EngineOptions& options, std::unique_ptr<InterHostComm> comm)
    : world_(std::move(member.world)),
      mpi_(std::move(member.mpi)),
      mpi_beside_(member.mpi_beside),
      bootstrap_(bootstrap),
      peer_memory_(bootstrap.segments()),
      commits_(world_.page, world_.local_rank),
      peers_(world_.page, world_.local_rank),
      backend_(heap, peer_memory_, OneHost().chunk_kib, TunedSettingsOf(world_), &peers_,
               OneHost().ring_from.value_or(StagingRing::From(SecondLevelCacheBytes())),
               OneHost().ring_from),
      hosts_(comm == nullptr
                 ? nullptr
                 : std::make_unique<HostsSession>(world_, std::move(comm), peers_, backend_, heap,
                                                  peer_memory_, options, mpi_ != nullptr)),
      devices_(DeviceOptions(heap)),
      engine_(peers_, hosts_ == nullptr ? backend_ : hosts_->backend(), heap, WorldGroup(world_),
              InWorld(options, world_, bootstrap_, devices_)),
      callbacks_(engine_, heap),
      timeline_(world_) {
  RankBlock& block = world_.page.rank(world_.local_rank);
  block.pid.store(static_cast<uint32_t>(::getpid()), std::memory_order_relaxed);
  block.state.store(static_cast<uint32_t>(RankState::kIn), std::memory_order_release);
  if (const std::string& path = timeline_choice_.path; !path.empty()) {
    Status started = timeline_.Start(path, timeline_choice_.mark_cycles);
    if (!started.ok()) LogWarning(started.message() + "; training goes on without it");
  }
  if (bootstrap_.watched()) runtime_thread_ = std::thread([this] { RunRuntimeThread(); });
}

Session::~Session() {
  const TimePoint since = SteadyNow();
  FailPending();
  callbacks_.Stop();
  timeline_.Stop();
  RankBlock& block = world_.page.rank(world_.local_rank);
  // A rank that leaves because its agent is gone has not left voluntarily: neighbours that notice
  // later must not name this rank as the cause.
  if (!agent_gone_.load(std::memory_order_acquire))
    block.state.store(static_cast<uint32_t>(RankState::kLeft), std::memory_order_release);
  peers_.WakeAll();
  std::this_thread::sleep_for(std::chrono::milliseconds(TestNumber("HVD_TEST_LEAVE_MS", 0)));
  if (!world_.page.broken()) devices_.Leave();
  if (hosts_ != nullptr) hosts_->Leave();
  stopping_.store(true, std::memory_order_release);
  Ring(block.runtime_bell);
  if (runtime_thread_.joinable()) runtime_thread_.join();
  if (hosts_ != nullptr) hosts_->Disconnect();
  bootstrap_.Leave(world_.generation, since);
}

Status Session::StartTimeline(const std::string& path, bool mark_cycles) {
  if (!timeline_choice_.may_start) {
    return Unsupported(
        "The timeline cannot be started, because the job was not started for it. Set "
        "HOROVOD_TIMELINE=DYNAMIC to enable dynamic timeline usage.");
  }
  return timeline_.Start(path, mark_cycles);
}

void Session::NoteStacks(uint32_t signal, uint32_t fd) const {
  StallBoard& board = world_.page.rank(world_.local_rank).stalls;
  board.stack_fd.store(fd, std::memory_order_relaxed);
  board.stack_signal.store(signal, std::memory_order_release);
}

void Session::Close(const std::string& sentence) {
  commits_.Close(sentence);
  engine_.Close(sentence);
}

Status Session::AddProcessSets(const std::vector<std::vector<uint32_t>>& given) {
  // Where the size changes, process sets are also given for other world sizes.
  const auto& sets = world_.ranks_change ? SetsWithin(given, world_.size) : given;
  for (size_t i = 0; i < sets.size(); ++i) {
    Result<Engine::Handle> handle = engine_.SubmitAddProcessSet(sets[i]);
    Status added = handle.ok() ? engine_.Wait(*handle, Duration(-1)) : handle.status();
    if (added.ok()) continue;
    if (Status why = InitFailure(world_, added); why.code() == Code::kInProgress) return why;
    return {added.code(),
            Format("process set number {} of hvd.init(): {}", i + 1, added.message())};
  }
  return Status::Ok();
}

BackendFacts Session::backend_facts() const {
  BackendFacts facts = FactsOf(world_, mpi_.get(), mpi_beside_);
  facts.cuda = devices_.loaded();
  facts.nccl = devices_.UsesNccl();
  return facts;
}

std::string Session::Failure() const {
  if (world_.page.broken()) return world_.page.broken_text();
  return hosts_ == nullptr ? "" : hosts_->Failure();
}

void Session::PollHosts() {
  hosts_->PollAgent(bootstrap_);
  for (const InterHostLink& link : hosts_->NewOnLinks(SteadyNow()))
    engine_.NoteLink(link.rank, link.bytes, static_cast<uint32_t>(link.busy_us));
}

CudaBackendOptions Session::DeviceOptions(SharedHeap& heap) {
  CudaBackendOptions options;
  options.rank = world_.rank;
  options.host = hosts_ == nullptr ? static_cast<Backend*>(&backend_) : &hosts_->backend();
  options.several_hosts = hosts_ != nullptr;
  options.heap = &heap;
  options.peer_memory = &peer_memory_;
  options.store = &bootstrap_.directory();
  static const SteadyClock clock;
  options.clock = &clock;
  options.wake_peers = [this] { peers_.WakeAll(); };
  options.warn = [](const std::string& sentence) { LogWarning(sentence); };
  options.end_process = EndProcess;
  AddDeviceSettingsFromEnv(&options);
  return options;
}

// A GPU that waits for a rank that is gone waits forever, and so does whoever waits for that GPU.
void Session::PollDevices() {
  if (world_.page.broken()) return devices_.Abort(Aborted(world_.page.broken_text()));
  devices_.Watch();
}

// Holds the mark by which our death is noticed, listens to the agent, and makes sure that peers do
// not wait for us.
void Session::RunRuntimeThread() {
  RankBlock& block = world_.page.rank(world_.local_rank);
  AliveMark alive;
  if (Status held = alive.Hold(block.alive); !held.ok()) LogWarning(held.message());
  block.runtime_bell.sleeping.store(1, std::memory_order_relaxed);
  while (!stopping_.load(std::memory_order_acquire)) {
    uint32_t word = block.runtime_bell.word.load(std::memory_order_acquire);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in Ring
    if (stopping_.load(std::memory_order_acquire)) break;
    if (Status agent = bootstrap_.PollAgent(); !agent.ok()) {
      agent_gone_.store(true, std::memory_order_release);
      Close(agent.message());
    }
    if (hosts_ != nullptr) PollHosts();
    if (devices_.loaded()) PollDevices();
    bool unsent = engine_.TryProgress();
    SleepOn(block.runtime_bell, word, unsent ? kLookSoonNs : kLookAgainNs);
  }
  alive.Release();
}

}  // namespace hvd
