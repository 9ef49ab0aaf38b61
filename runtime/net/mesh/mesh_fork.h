// A forked child holds nothing of the mesh: its copies of the sockets would keep connections open
// after this process has died. Handlers of pthread_atfork close them in the child; nobody is inside
// a mesh while the process is copied.
#ifndef HVD_RUNTIME_NET_MESH_MESH_FORK_H_
#define HVD_RUNTIME_NET_MESH_MESH_FORK_H_

#include "runtime/base/thread_annotations.h"

namespace hvd {

// A part that a fork has to hold still and close. Called by the forking thread, in this order:
// LockForFork, then UnlockAfterFork in the parent, and CloseInForkedChild and UnlockAfterFork in
// the child.
class ForkParticipant {
 public:
  virtual void LockForFork() = 0;
  virtual void UnlockAfterFork() = 0;
  virtual void CloseInForkedChild() = 0;

 protected:
  ~ForkParticipant() = default;
};

// Any thread. A participant removes itself before it is destroyed.
class ForkGuard {
 public:
  static void Add(ForkParticipant* participant);
  static void Remove(ForkParticipant* participant);

 private:
  // The first takes locks that the others release, which clang cannot follow.
  static void BeforeFork() HVD_NO_THREAD_SAFETY_ANALYSIS;
  static void InParent() HVD_NO_THREAD_SAFETY_ANALYSIS;
  static void InChild() HVD_NO_THREAD_SAFETY_ANALYSIS;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_FORK_H_
