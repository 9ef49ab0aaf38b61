// A forked child keeps nothing of the mesh: its copies of the sockets would keep connections open
// after this process has died. pthread_atfork handlers close them in the child; no thread is inside
// a mesh during the fork.
#ifndef HVD_RUNTIME_NET_MESH_MESH_FORK_H_
#define HVD_RUNTIME_NET_MESH_MESH_FORK_H_

#include "runtime/base/thread_annotations.h"
#include "runtime/net/mesh/mesh_driver.h"

namespace hvd {

// A fork locks each of these drivers, and closes it in the child. Any thread. Remove a driver
// before it is destroyed.
class ForkGuard {
 public:
  static void Add(MeshDriver* driver);
  static void Remove(MeshDriver* driver);

 private:
  // The first takes locks that the others release, which clang cannot analyse.
  static void BeforeFork() HVD_NO_THREAD_SAFETY_ANALYSIS;
  static void InParent() HVD_NO_THREAD_SAFETY_ANALYSIS;
  static void InChild() HVD_NO_THREAD_SAFETY_ANALYSIS;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_FORK_H_
