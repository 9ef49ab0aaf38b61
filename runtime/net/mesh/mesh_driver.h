// MeshDriver: the waits in a mesh. One of the waiting threads drives: it reads, writes and accepts
// for all (mesh_turns.h). Holds the lock of the mesh, which the reactor needs.
//
// Thread-safe.
#ifndef HVD_RUNTIME_NET_MESH_MESH_DRIVER_H_
#define HVD_RUNTIME_NET_MESH_MESH_DRIVER_H_

#include <sys/epoll.h>

#include <condition_variable>
#include <cstdint>
#include <span>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_address.h"
#include "runtime/net/mesh/mesh_reactor.h"
#include "runtime/net/mesh/mesh_signs.h"
#include "runtime/net/mesh/mesh_turns.h"

namespace hvd {

class MeshDriver {
 public:
  // The descriptors of `options` are the driver's own. `spin`: as in MeshOptions.
  MeshDriver(MeshReactorOptions options, MeshListener listener, MeshSigns& silences, Duration spin);
  MeshDriver(const MeshDriver&) = delete;
  // False: descriptors could not be created; errno says why.
  bool valid() const { return epoll_.valid() && kick_.valid(); }

  // Waits until the waiter's transfers are done, one has failed, or its deadline has passed
  // (kInProgress).
  Status WaitFor(MeshWaiter& waiter) HVD_EXCLUDES(mutex);
  // The same; `lock` holds the mutex, which is released while the thread sleeps.
  Status WaitFor(MeshWaiter& waiter, MutexLock& lock) HVD_REQUIRES(mutex);
  // Ends the current wait of a patient thread, or the next one.
  void Wake() HVD_EXCLUDES(mutex);
  // To be called after anything except the driver's own work that may have ended a wait.
  void NotifyAll() HVD_REQUIRES(mutex);
  // Ends the sleep of the thread that polls.
  void Kick();

  // For the thread of the mesh: serves the connections while no other thread waits, until Stop,
  // which says goodbye to all peers.
  void Serve() HVD_EXCLUDES(mutex);
  void Stop() HVD_EXCLUDES(mutex);

  MeshReactor& reactor() HVD_REQUIRES(mutex) { return reactor_; }
  // In a forked child: closes every descriptor and touches nothing else.
  void CloseInForkedChild() HVD_REQUIRES(mutex);

  Mutex mutex;

 private:
  bool MustReturn(MeshWaiter& waiter) HVD_REQUIRES(mutex);
  Status Outcome(MeshWaiter& waiter) HVD_REQUIRES(mutex);
  void NotifyWaiters() HVD_REQUIRES(mutex);
  void Drive(MeshWaiter& waiter) HVD_REQUIRES(mutex);
  void StopDriving(MeshWaiter& waiter) HVD_REQUIRES(mutex);
  void ReadAwaited(MeshWaiter& waiter) HVD_REQUIRES(mutex);
  void LetOthersIn() HVD_REQUIRES(mutex);
  void PollOnce(int timeout_ms) HVD_REQUIRES(mutex);
  int AwaitEvents(std::span<epoll_event> events, int timeout_ms) HVD_REQUIRES(mutex);
  void Pause() HVD_REQUIRES(mutex);

  const uint32_t rank_;
  const Duration spin_;
  UniqueFd epoll_, kick_;  // closed only by a forked child
  MeshReactor reactor_ HVD_GUARDED_BY(mutex);
  MeshTurns turns_ HVD_GUARDED_BY(mutex);
  bool stopping_ HVD_GUARDED_BY(mutex) = false;
  Mutex pausing_;  // taken alone
  std::condition_variable pause_;
  bool no_pause_ HVD_GUARDED_BY(pausing_) = false;
  bool wake_ HVD_GUARDED_BY(mutex) = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_DRIVER_H_
