#include "runtime/net/mesh/mesh.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "runtime/base/idle_limit.h"
#include "runtime/base/relax.h"

namespace hvd {
namespace {

constexpr size_t kEventsAtOnce = 32;
constexpr int kIdleLookMs = 500;
constexpr int kLongestPollMs = 60'000;

std::string NameOfRank(uint32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

// ---- handles

MeshHandle& MeshHandle::operator=(MeshHandle&& other) noexcept {
  GiveUp();
  mesh_ = other.mesh_;
  transfer_ = std::move(other.transfer_);
  return *this;
}

void MeshHandle::GiveUp() {
  if (transfer_ != nullptr) mesh_->GiveUp(transfer_.get());
  transfer_.reset();
}

// ---- open and close

Result<std::unique_ptr<Mesh>> Mesh::Open(MeshOptions options, KvStore& directory) {
  if (options.job_key.empty()) {
    return InvalidArgument("rank " + std::to_string(options.rank) +
                           " has no job key, and without it every program could join the job");
  }
  Result<MeshListener> listener = OpenMeshListener(options.listen, options.rank);
  if (!listener.ok()) return listener.status();
  std::unique_ptr<Mesh> mesh(new Mesh(std::move(options), directory, std::move(*listener)));
  if (Status started = mesh->Start(directory); !started.ok()) return started;
  return mesh;
}

Mesh::Mesh(MeshOptions options, KvStore& directory, MeshListener listener)
    : options_(std::move(options)),
      record_(listener.record),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      kick_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      reactor_(ReactorOptions(), std::move(listener), silences_),
      resolver_(directory, [this](uint32_t rank, const Result<MeshRecord>& record) {
        Resolved(rank, record);
      }) {}

MeshReactorOptions Mesh::ReactorOptions() {
  MeshReactorOptions options;
  options.connector = {.identity = {options_.job_key, options_.generation, options_.rank},
                       .connect_timeout = options_.connect_timeout,
                       .handshake_timeout = options_.handshake_timeout,
                       .name = options_.name ? options_.name : NameOfRank};
  options.most_kept_bytes = options_.most_kept_bytes;
  options.epoll = epoll_.get();
  options.kick = kick_.get();
  options.resolve = [this](uint32_t rank) {
    resolver_.Ask(rank, SteadyNow() + options_.connect_timeout);
  };
  return options;
}

Status Mesh::Start(KvStore& directory) {
  if (!epoll_.valid() || !kick_.valid()) {
    return SystemError("rank " + std::to_string(options_.rank) + " cannot watch connections",
                       errno);
  }
  ForkGuard::Add(this);
  Status told = directory.Put(MeshKvKey(options_.rank), EncodeMeshRecord(record_));
  if (told.ok()) thread_ = std::thread([this] { RunThread(); });
  return told;
}

Mesh::~Mesh() {
  ForkGuard::Remove(this);
  resolver_.Stop();
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    reactor_.SendGoodbye();
    turns_.EndRest();
  }
  Kick();
  if (thread_.joinable()) thread_.join();
}

void Mesh::Abort(const Status& why) {
  MutexLock lock(mutex_);
  reactor_.Abort(why, "rank " + std::to_string(options_.rank) + " gave up: " + why.message());
  NotifyAll();
}

void Mesh::Kick() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(kick_.get(), &one, sizeof one);
}

void Mesh::Resolved(uint32_t rank, const Result<MeshRecord>& record) {
  MutexLock lock(mutex_);
  reactor_.Resolved(rank, record, SteadyNow());
  NotifyAll();
  Kick();  // a thread that polls has a new time to look at
}

void Mesh::CloseInForkedChild() {
  reactor_.CloseInForkedChild();
  epoll_.Reset();
  kick_.Reset();
}

std::string Mesh::AddressOf(uint32_t rank) {
  MutexLock lock(mutex_);
  return reactor_.AddressOf(rank);
}

// ---- transfers

MeshHandle Mesh::Send(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes) {
  auto transfer = std::make_unique<MeshTransfer>();
  transfer->peer = peer;
  transfer->tag = tag;
  transfer->from = bytes.data();
  transfer->bytes = bytes.size();
  return Begin(std::move(transfer));
}

MeshHandle Mesh::Receive(uint32_t peer, MeshTag tag, std::span<std::byte> bytes) {
  auto transfer = std::make_unique<MeshTransfer>();
  transfer->kind = MeshTransfer::Kind::kReceive;
  transfer->peer = peer;
  transfer->tag = tag;
  transfer->to = bytes.data();
  transfer->bytes = bytes.size();
  return Begin(std::move(transfer));
}

MeshHandle Mesh::ReceiveSmall(uint32_t peer, MeshTag tag) {
  auto transfer = std::make_unique<MeshTransfer>();
  transfer->kind = MeshTransfer::Kind::kReceiveSmall;
  transfer->peer = peer;
  transfer->tag = tag;
  return Begin(std::move(transfer));
}

MeshHandle Mesh::Begin(std::unique_ptr<MeshTransfer> transfer) {
  MutexLock lock(mutex_);
  reactor_.Begin(transfer.get());
  NotifyAll();
  return MeshHandle(this, std::move(transfer));
}

void Mesh::GiveUp(MeshTransfer* transfer) {
  MutexLock lock(mutex_);
  reactor_.GiveUp(transfer);
  NotifyAll();
}

// ---- waiting

Status Mesh::Wait(MeshHandle& handle, TimePoint deadline, std::span<const uint32_t> group) {
  return WaitAll({&handle, 1}, deadline, group);
}

Status Mesh::WaitAll(std::span<MeshHandle> handles, TimePoint deadline,
                     std::span<const uint32_t> group) {
  MeshWaiter waiter{.handles = handles, .deadline = deadline, .group = group};
  return WaitFor(waiter);
}

Status Mesh::WaitWhileMoving(std::span<MeshHandle> handles, Duration idle_limit,
                             std::span<const uint32_t> group) {
  if (idle_limit == kNoLimit) return WaitAll(handles, TimePoint::max(), group);
  IdleLimit idle(idle_limit, MovedWith(group), SteadyNow());
  for (;;) {
    Status done = WaitAll(handles, idle.next_look(), group);
    if (done.code() != Code::kInProgress || idle.Over(MovedWith(group), SteadyNow())) return done;
  }
}

uint64_t Mesh::MovedWith(std::span<const uint32_t> group) {
  MutexLock lock(mutex_);
  return reactor_.MovedWith(group);
}

Result<MeshMessage> Mesh::WaitSmall(MeshHandle& handle, TimePoint deadline) {
  MeshWaiter waiter{.handles = {&handle, 1}, .deadline = deadline, .patient = true};
  if (Status done = WaitFor(waiter); !done.ok()) return done;
  MeshMessage message{handle.transfer_->peer, std::move(handle.transfer_->small)};
  handle.transfer_.reset();
  return message;
}

void Mesh::Wake() {
  {
    MutexLock lock(mutex_);
    wake_ = true;
    NotifyWaiters();
    const MeshWaiter* driver = turns_.driver();
    if (driver == nullptr || !driver->patient) return;
  }
  Kick();  // without the lock, which the driver takes at once
}

bool Mesh::MustReturn(MeshWaiter& waiter) {
  const MeshTransfer* awaited = waiter.Awaited();
  return awaited == nullptr || awaited->done || (waiter.patient && wake_) ||
         !reactor_.LossIn(waiter.group).ok();
}

Status Mesh::WaitFor(MeshWaiter& waiter) {
  MutexLock lock(mutex_);
  turns_.NoteWait();
  while (!MustReturn(waiter)) {
    if (turns_.Take(waiter)) {
      Drive(waiter);
      turns_.PassOn();
    } else {
      if (turns_.AsksForHandOver(waiter)) Kick();
      turns_.Sleep(waiter, lock);
    }
    if (SteadyNow() >= waiter.deadline) break;
  }
  if (turns_.driver() == &waiter) turns_.PassOn();
  return Outcome(waiter);
}

Status Mesh::Outcome(MeshWaiter& waiter) {
  const MeshTransfer* awaited = waiter.Awaited();
  if (awaited == nullptr) return Status::Ok();
  if (awaited->done) return awaited->status;
  if (Status loss = reactor_.LossIn(waiter.group); !loss.ok()) return loss;
  if (waiter.patient) wake_ = false;
  return {Code::kInProgress,
          "rank " + std::to_string(options_.rank) + " waited in vain for " +
              (awaited->peer == kAnyMeshPeer ? "any rank" : reactor_.NameOf(awaited->peer))};
}

void Mesh::NotifyWaiters() {
  for (MeshWaiter* waiter : turns_.sleepers()) {
    if (MustReturn(*waiter)) waiter->turn.notify_one();
  }
}

// After anything but the driver's own work by which a wait may have come to its end.
void Mesh::NotifyAll() {
  NotifyWaiters();
  MeshWaiter* driver = turns_.driver();
  if (driver != nullptr && MustReturn(*driver)) Kick();
}

// ---- driving

void Mesh::Drive(MeshWaiter& waiter) {
  const Duration spin = waiter.patient ? Duration::zero() : options_.spin;
  TimePoint now = SteadyNow(), spin_until = now + spin;
  ReadAwaited(waiter);
  while (!MustReturn(waiter)) {
    const uint64_t moved = reactor_.moved();
    const TimePoint until = std::min(waiter.deadline, reactor_.NextTick());
    const bool spins = now < spin_until;
    if (spins) ReadAwaited(waiter);
    if (moved == reactor_.moved()) {
      PollOnce(spins ? 0 : MillisecondsUntil(until, now, kLongestPollMs));
    }
    NotifyWaiters();
    now = SteadyNow();
    if (moved != reactor_.moved()) spin_until = now + spin;
    if (turns_.hand_over() || now >= waiter.deadline) break;
    if (spins) LetOthersIn();
  }
  NotifyWaiters();
}

// A spinning thread has the lock nearly all the time.
void Mesh::LetOthersIn() {
  mutex_.unlock();
  Relax();
  mutex_.lock();
}

// What is awaited comes from this peer, most likely: no need to ask the epoll.
void Mesh::ReadAwaited(MeshWaiter& waiter) {
  if (const MeshTransfer* awaited = waiter.Awaited()) reactor_.ReadFor(*awaited);
}

void Mesh::PollOnce(int timeout_ms) {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = AwaitEvents(events, timeout_ms);
  reactor_.Handle({events.data(), static_cast<size_t>(std::max(count, 0))}, SteadyNow());
}

// Lets go of the lock while it sleeps.
int Mesh::AwaitEvents(std::span<epoll_event> events, int timeout_ms) {
  const auto most = static_cast<int>(events.size());
  if (timeout_ms == 0) return ::epoll_wait(epoll_.get(), events.data(), most, 0);
  mutex_.unlock();
  const int count = ::epoll_wait(epoll_.get(), events.data(), most, timeout_ms);
  mutex_.lock();
  return count;
}

// Serves the connections while no other thread waits.
void Mesh::RunThread() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (turns_.StandBack(lock)) continue;
    const int timeout_ms = MillisecondsUntil(reactor_.NextTick(), SteadyNow(), kIdleLookMs);
    lock.unlock();
    // It looks only: another thread may have begun to drive meanwhile.
    epoll_event event{};
    ::epoll_wait(epoll_.get(), &event, 1, timeout_ms);
    lock.lock();
    if (!stopping_ && turns_.IsQuiet()) PollOnce(0);
  }
}

}  // namespace hvd
