#include "runtime/net/mesh/mesh_turns.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {}  // namespace

const MeshTransfer* MeshWaiter::Awaited() {
  if (alone != nullptr) return alone->done && alone->status.ok() ? nullptr : alone;
  for (; !handles.empty(); handles = handles.subspan(1)) {
    const MeshTransfer* transfer = handles.front().transfer_.get();
    if (!transfer->done || !transfer->status.ok()) return transfer;
  }
  return nullptr;
}

bool MeshTurns::TryDrive(MeshWaiter& waiter) {
  if (driver_ == nullptr) driver_ = &waiter;
  return driver_ == &waiter;
}

bool MeshTurns::AsksForHandOver(const MeshWaiter& waiter) {
  return driver_->patient && !waiter.patient && !std::exchange(hand_over_, true);
}

void MeshTurns::Sleep(MeshWaiter& waiter, MutexLock& lock) {
  sleepers_.push_back(&waiter);
  waiter.turn.wait_until(lock, waiter.deadline);
  std::erase(sleepers_, &waiter);
}

MeshWaiter* MeshTurns::DataWaiter() const {
  const auto found = std::ranges::find(sleepers_, false, &MeshWaiter::patient);
  return found == sleepers_.end() ? nullptr : *found;
}

void MeshTurns::Pause() {
  if (DataWaiter() != nullptr) return PassOn();
  hand_over_ = false;
  driver_ = nullptr;
}

void MeshTurns::PassOn() {
  hand_over_ = false;
  driver_ = DataWaiter();
  if (driver_ == nullptr && !sleepers_.empty()) driver_ = sleepers_.front();
  if (driver_ != nullptr) {
    driver_->turn.notify_one();
  } else {
    EndRest();
  }
}

MeshTurns::Turn MeshTurns::Yield(MutexLock& lock) {
  if (IsQuiet()) return Turn::kServe;
  if (std::exchange(waits_seen_, waits_) != waits_) return Turn::kPause;
  // One wait, and a long one: PassOn says when it is over.
  resting_ = true;
  quiet_.wait(lock, [this] { return !resting_; });
  return Turn::kAgain;
}

void MeshTurns::EndRest() {
  if (std::exchange(resting_, false)) quiet_.notify_all();
}

}  // namespace hvd
