#include "runtime/net/mesh/mesh_driver.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/base/relax.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kEventsAtOnce = 32;
// Successful reads of the awaited connection without polling the others.
constexpr int kMostUnpolled = 4;
// While other threads drive, the thread of the mesh checks at this interval whether it is needed
// again.
constexpr Duration kYield = std::chrono::milliseconds(2);
constexpr int kIdleLookMs = 500;
constexpr int kLongestPollMs = 60'000;

MeshReactorOptions With(MeshReactorOptions options, int epoll, int kick) {
  options.epoll = epoll;
  options.kick = kick;
  return options;
}

}  // namespace

MeshDriver::MeshDriver(MeshReactorOptions options, MeshListener listener, MeshSigns& silences,
                       Duration spin)
    : rank_(options.connector.identity.rank),
      spin_(spin),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      kick_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      reactor_(With(std::move(options), epoll_.get(), kick_.get()), std::move(listener), silences) {
}

void MeshDriver::Stop() {
  {
    MutexLock lock(mutex);
    stopping_ = true;
    reactor_.SendGoodbye();
    turns_.EndRest();
  }
  {
    MutexLock lock(pausing_);
    no_pause_ = true;
  }
  pause_.notify_all();
  Kick();
}

void MeshDriver::CloseInForkedChild() {
  reactor_.CloseInForkedChild();
  epoll_.Reset();
  kick_.Reset();
}

void MeshDriver::Kick() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(kick_.get(), &one, sizeof one);
}

void MeshDriver::Wake() {
  {
    MutexLock lock(mutex);
    wake_ = true;
    NotifyWaiters();
    const MeshWaiter* driver = turns_.driver();
    if (driver == nullptr || !driver->patient) return;
  }
  Kick();  // without the lock, which the driver acquires at once
}

bool MeshDriver::MustReturn(MeshWaiter& waiter) {
  const MeshTransfer* awaited = waiter.Awaited();
  return awaited == nullptr || awaited->done || (waiter.patient && wake_) ||
         !reactor_.LossIn(waiter.group).ok();
}

Status MeshDriver::WaitFor(MeshWaiter& waiter) {
  MutexLock lock(mutex);
  return WaitFor(waiter, lock);
}

Status MeshDriver::WaitFor(MeshWaiter& waiter, MutexLock& lock) {
  turns_.NoteWait();
  while (!MustReturn(waiter)) {
    if (turns_.TryDrive(waiter)) {
      Drive(waiter);
      StopDriving(waiter);
    } else {
      if (turns_.AsksForHandOver(waiter)) Kick();
      turns_.Sleep(waiter, lock);
    }
    if (waiter.only_looks() || SteadyNow() >= waiter.deadline) break;
  }
  // Perhaps no thread drives because this one paused: it has returned now, perhaps for nothing.
  const MeshWaiter* driver = turns_.driver();
  if (driver == nullptr || driver == &waiter) StopDriving(waiter);
  return Outcome(waiter);
}

void MeshDriver::StopDriving(MeshWaiter& waiter) {
  if (waiter.returns && waiter.Awaited() == nullptr) {
    turns_.Pause();
  } else {
    turns_.PassOn();
  }
}

Status MeshDriver::Outcome(MeshWaiter& waiter) {
  const MeshTransfer* awaited = waiter.Awaited();
  if (awaited == nullptr) return Status::Ok();
  if (awaited->done) return awaited->status;
  HVD_RETURN_IF_ERROR(reactor_.LossIn(waiter.group));
  if (waiter.patient) wake_ = false;
  // A poll that found nothing needs no message, and there are many of them.
  if (waiter.only_looks()) return {Code::kInProgress, ""};
  return {Code::kInProgress,
          Format("rank {} has received nothing from {}", rank_,
                 awaited->peer == kAnyMeshPeer ? "any rank" : reactor_.NameOf(awaited->peer))};
}

void MeshDriver::NotifyWaiters() {
  for (MeshWaiter* waiter : turns_.sleepers()) {
    if (MustReturn(*waiter)) waiter->turn.notify_one();
  }
}

void MeshDriver::NotifyAll() {
  NotifyWaiters();
  MeshWaiter* driver = turns_.driver();
  if (driver != nullptr && MustReturn(*driver)) Kick();
}

// ---- driving

void MeshDriver::Drive(MeshWaiter& waiter) {
  ReadAwaited(waiter);
  if (waiter.only_looks()) {
    if (!MustReturn(waiter)) PollOnce(0);
    return NotifyWaiters();
  }
  TimePoint now = SteadyNow();
  const Duration spin = waiter.spins ? spin_ : Duration::zero();
  TimePoint spin_until = now + spin;
  int unpolled = 0;
  while (!MustReturn(waiter)) {
    const uint64_t moved = reactor_.moved();
    const TimePoint until = std::min(waiter.deadline, reactor_.NextTick());
    const bool spins = now < spin_until;
    if (spins) ReadAwaited(waiter);
    const bool came = moved != reactor_.moved();
    // If one connection keeps delivering, the others get their turn, too.
    if (!came || ++unpolled >= kMostUnpolled) {
      PollOnce(spins ? 0 : MillisecondsUntil(until, now, kLongestPollMs));
      unpolled = 0;
    }
    NotifyWaiters();
    now = SteadyNow();
    if (moved != reactor_.moved()) spin_until = now + spin;
    if (turns_.hand_over() || now >= waiter.deadline) break;
    if (spins) LetOthersIn();
  }
  NotifyWaiters();
}

// A spinning thread holds the lock nearly all the time.
void MeshDriver::LetOthersIn() {
  mutex.unlock();
  Relax();
  mutex.lock();
}

// The awaited message most likely comes from this peer: no need to query the epoll.
void MeshDriver::ReadAwaited(MeshWaiter& waiter) {
  if (const MeshTransfer* awaited = waiter.Awaited()) reactor_.ReadFor(*awaited);
}

void MeshDriver::PollOnce(int timeout_ms) {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = AwaitEvents(events, timeout_ms);
  reactor_.Handle({events.data(), static_cast<size_t>(std::max(count, 0))}, SteadyNow());
}

// Releases the lock while it sleeps.
int MeshDriver::AwaitEvents(std::span<epoll_event> events, int timeout_ms) {
  const auto most = static_cast<int>(events.size());
  if (timeout_ms == 0) return ::epoll_wait(epoll_.get(), events.data(), most, 0);
  reactor_.Acknowledge();
  mutex.unlock();
  const int count = ::epoll_wait(epoll_.get(), events.data(), most, timeout_ms);
  mutex.lock();
  return count;
}

// Without the lock, which the driving threads hold nearly all the time: they would wake a thread
// that waits for it at each release.
void MeshDriver::Pause() {
  mutex.unlock();
  for (;;) {
    bool stopping = false;
    {
      MutexLock lock(pausing_);
      pause_.wait_for(lock, kYield, [this]() HVD_REQUIRES(pausing_) { return no_pause_; });
      stopping = no_pause_;
    }
    if (stopping) return mutex.lock();
    if (mutex.try_lock()) return;
  }
}

void MeshDriver::Serve() {
  MutexLock lock(mutex);
  while (!stopping_) {
    const MeshTurns::Turn turn = turns_.Yield(lock);
    if (turn == MeshTurns::Turn::kPause) Pause();
    if (turn != MeshTurns::Turn::kServe) continue;
    reactor_.Acknowledge();
    const int timeout_ms = MillisecondsUntil(reactor_.NextTick(), SteadyNow(), kIdleLookMs);
    lock.unlock();
    // Polls only: another thread may have begun to drive meanwhile.
    epoll_event event{};
    ::epoll_wait(epoll_.get(), &event, 1, timeout_ms);
    lock.lock();
    if (!stopping_ && turns_.IsQuiet()) PollOnce(0);
  }
}

}  // namespace hvd
