// MeshTurns: which thread waiting in a mesh drives, that is, reads, writes and accepts for all. The
// others sleep until their turn, or until their wait is over. The thread of the mesh drives while
// no other thread waits. Every call needs the mesh's lock.
#ifndef HVD_RUNTIME_NET_MESH_MESH_TURNS_H_
#define HVD_RUNTIME_NET_MESH_MESH_TURNS_H_

#include <condition_variable>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/net/mesh/mesh_handle.h"

namespace hvd {

// A waiting thread.
struct MeshWaiter {
  // It does not wait.
  bool only_looks() const { return deadline == TimePoint{}; }
  // The next unfinished or failed transfer; nullptr if all have succeeded.
  const MeshTransfer* Awaited();

  std::span<MeshHandle> handles = {};   // without the finished ones at the front
  const MeshTransfer* alone = nullptr;  // instead of them
  TimePoint deadline = {};
  bool patient = false;  // wakeable, and hands over driving to others
  bool spins = true;     // for MeshOptions::spin
  bool returns = false;  // MeshAfter::kReturns
  std::span<const uint32_t> group = {};
  std::condition_variable turn = {};  // it drives now, or must return
};

class MeshTurns {
 public:
  // A wait begins: the thread of the mesh stands aside for a while.
  void NoteWait() { ++waits_; }
  // True if this thread drives, which it does if no other did.
  bool TryDrive(MeshWaiter& waiter);
  const MeshWaiter* driver() const { return driver_; }
  MeshWaiter* driver() { return driver_; }
  // True, once, if the driver has to be woken because it is patient and this thread is not.
  bool AsksForHandOver(const MeshWaiter& waiter);
  // The driver should hand over to another thread.
  bool hand_over() const { return hand_over_; }
  // Sleeps until it is this thread's turn, until it must return, or until its deadline.
  void Sleep(MeshWaiter& waiter, MutexLock& lock);
  // The driver is done or hands over: to a thread that waits for data, if any.
  void PassOn();
  // The driver is done and soon back: meanwhile only a thread that waits for data may drive.
  void Pause();
  const std::vector<MeshWaiter*>& sleepers() const { return sleepers_; }

  // For the thread of the mesh. kServe: no other thread drives or has recently. kAgain: it has
  // rested until the last one was done. kPause: call again in a moment.
  enum class Turn : uint8_t { kServe, kAgain, kPause };
  Turn Yield(MutexLock& lock);
  // No wait has begun since Yield returned false.
  bool IsQuiet() const { return driver_ == nullptr && waits_ == waits_seen_; }
  // Ends the rest of the thread of the mesh.
  void EndRest();

 private:
  MeshWaiter* DataWaiter() const;

  MeshWaiter* driver_ = nullptr;
  std::vector<MeshWaiter*> sleepers_;
  bool hand_over_ = false;
  uint64_t waits_ = 0;             // so far
  uint64_t waits_seen_ = 0;        // by the thread of the mesh
  bool resting_ = false;           // the thread of the mesh, until no thread drives
  std::condition_variable quiet_;  // for the thread of the mesh
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_TURNS_H_
