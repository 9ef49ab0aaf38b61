#include "runtime/net/mesh_fork.h"

#include <pthread.h>

#include <mutex>
#include <vector>

#include "runtime/net/mesh.h"

namespace hvd {
namespace {

struct Meshes {
  std::mutex mutex;  // taken before the lock of any mesh
  std::vector<Mesh*> all;
};

// Never destroyed: a process may fork while it ends.
Meshes& TheMeshes() {
  static auto* const kMeshes = new Meshes;
  return *kMeshes;
}

}  // namespace

void MeshForkGuard::Add(Mesh* mesh) {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(&BeforeFork, &InParent, &InChild); });
  std::lock_guard lock(TheMeshes().mutex);
  TheMeshes().all.push_back(mesh);
}

void MeshForkGuard::Remove(Mesh* mesh) {
  std::lock_guard lock(TheMeshes().mutex);
  std::erase(TheMeshes().all, mesh);
}

void MeshForkGuard::BeforeFork() {
  TheMeshes().mutex.lock();
  for (Mesh* mesh : TheMeshes().all) mesh->mutex_.lock();
}

void MeshForkGuard::InParent() {
  for (Mesh* mesh : TheMeshes().all) mesh->mutex_.unlock();
  TheMeshes().mutex.unlock();
}

void MeshForkGuard::InChild() {
  for (Mesh* mesh : TheMeshes().all) {
    mesh->CloseInForkedChild();
    mesh->mutex_.unlock();
  }
  TheMeshes().all.clear();
  TheMeshes().mutex.unlock();
}

}  // namespace hvd
