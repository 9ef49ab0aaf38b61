// The part of Mesh that waits. One waiting thread drives; the others sleep until it is their
// turn, or until they have what they wait for.
#include <algorithm>
#include <utility>

#include "runtime/base/idle_limit.h"
#include "runtime/base/relax.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {
namespace {

constexpr int kLongestPollMs = 60'000;

}  // namespace

Status Mesh::Wait(MeshHandle& handle, TimePoint deadline, std::span<const uint32_t> group) {
  return WaitAll({&handle, 1}, deadline, group);
}

Status Mesh::WaitAll(std::span<MeshHandle> handles, TimePoint deadline,
                     std::span<const uint32_t> group) {
  Waiter waiter{.handles = handles, .deadline = deadline, .group = group};
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
  std::lock_guard lock(mutex_);
  uint64_t moved = 0;
  for (uint32_t rank : group) {
    if (const Peer* peer = FindPeer(rank)) moved += peer->moved;
  }
  return moved;
}

Result<MeshMessage> Mesh::WaitSmall(MeshHandle& handle, TimePoint deadline) {
  Waiter waiter{.handles = {&handle, 1}, .deadline = deadline, .patient = true};
  if (Status done = WaitFor(waiter); !done.ok()) return done;
  MeshMessage message{handle.transfer_->peer, std::move(handle.transfer_->small)};
  handle.transfer_.reset();
  return message;
}

void Mesh::Wake() {
  {
    std::lock_guard lock(mutex_);
    wake_ = true;
    SendToWaiters();
    if (driver_ == nullptr || !driver_->patient) return;
  }
  Kick();  // without the lock, which the driver takes at once
}

// What is still to come, or what failed; nullptr when all is well.
const MeshTransfer* Mesh::Awaited(Waiter& waiter) {
  for (; !waiter.handles.empty(); waiter.handles = waiter.handles.subspan(1)) {
    const MeshTransfer* transfer = waiter.handles.front().transfer_.get();
    if (!transfer->done || !transfer->status.ok()) return transfer;
  }
  return nullptr;
}

Status Mesh::LossIn(std::span<const uint32_t> group) {
  for (uint32_t rank : group) {
    const Peer* peer = losses_ > 0 ? FindPeer(rank) : nullptr;
    if (peer != nullptr && !peer->lost.ok() && !peer->LeftInPeace()) return peer->lost;
  }
  return Status::Ok();
}

bool Mesh::MustReturn(Waiter& waiter) {
  const MeshTransfer* awaited = Awaited(waiter);
  return awaited == nullptr || awaited->done || (waiter.patient && wake_) ||
         !LossIn(waiter.group).ok();
}

Status Mesh::WaitFor(Waiter& waiter) {
  Lock lock(mutex_);
  ++drives_;
  while (!MustReturn(waiter)) {
    if (driver_ == nullptr) driver_ = &waiter;
    if (driver_ == &waiter) {
      Drive(waiter, lock);
      PassOn();
    } else {
      WaitForTurn(waiter, lock);
    }
    if (SteadyNow() >= waiter.deadline) break;
  }
  if (driver_ == &waiter) PassOn();
  const MeshTransfer* awaited = Awaited(waiter);
  if (awaited == nullptr) return Status::Ok();
  if (awaited->done) return awaited->status;
  if (Status loss = LossIn(waiter.group); !loss.ok()) return loss;
  if (waiter.patient) wake_ = false;
  return {Code::kInProgress,
          "rank " + std::to_string(options_.rank) + " waited in vain for " +
              (awaited->peer == kAnyMeshPeer ? "any rank" : NameOf(PeerOf(awaited->peer)))};
}

void Mesh::WaitForTurn(Waiter& waiter, Lock& lock) {
  if (driver_->patient && !waiter.patient && !std::exchange(hand_over_, true)) Kick();
  waiters_.push_back(&waiter);
  waiter.turn.wait_until(lock, waiter.deadline);
  std::erase(waiters_, &waiter);
}

// The driver is done, or lets another one drive: one that waits for data, if there is any.
void Mesh::PassOn() {
  hand_over_ = false;
  auto next = std::ranges::find(waiters_, false, &Waiter::patient);
  if (next == waiters_.end()) next = waiters_.begin();
  driver_ = next == waiters_.end() ? nullptr : *next;
  if (driver_ != nullptr) {
    driver_->turn.notify_one();
  } else if (std::exchange(resting_, false)) {
    quiet_.notify_all();
  }
}

void Mesh::SendToWaiters() {
  for (Waiter* waiter : waiters_) {
    if (MustReturn(*waiter)) waiter->turn.notify_one();
  }
}

// After anything but the driver's own work by which a wait may have come to its end.
void Mesh::SendToAll() {
  SendToWaiters();
  if (driver_ != nullptr && MustReturn(*driver_)) Kick();
}

void Mesh::Drive(Waiter& waiter, Lock& lock) {
  const Duration spin = waiter.patient ? Duration::zero() : options_.spin;
  TimePoint now = SteadyNow(), spin_until = now + spin;
  ReadAwaited(waiter);
  while (!MustReturn(waiter)) {
    const uint64_t moved = moved_;
    const TimePoint until = std::min({waiter.deadline, connector_.NextTick(), next_silence_look_});
    const bool spins = now < spin_until;
    if (spins) ReadAwaited(waiter);
    if (moved == moved_) PollOnce(lock, spins ? 0 : MillisecondsUntil(until, now, kLongestPollMs));
    SendToWaiters();
    now = SteadyNow();
    if (moved != moved_) spin_until = now + spin;
    if (hand_over_ || now >= waiter.deadline) break;
    if (spins) LetOthersIn(lock);
  }
  SendToWaiters();
}

// A spinning thread has the lock nearly all the time.
void Mesh::LetOthersIn(Lock& lock) {
  lock.unlock();
  Relax();
  lock.lock();
}

// What is awaited comes from this peer, most likely: no need to ask the epoll.
void Mesh::ReadAwaited(Waiter& waiter) {
  const MeshTransfer* awaited = Awaited(waiter);
  Peer* peer = awaited == nullptr ? nullptr : FindPeer(awaited->peer);
  if (peer != nullptr && awaited->kind != MeshTransfer::Kind::kSend) Read(*peer, awaited);
}

}  // namespace hvd
