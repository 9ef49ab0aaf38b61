// MeshSigns: what a mesh last observed about its peers: which are silent, and how fast their links
// are. From any thread, without waiting for the thread that drives the mesh.
#ifndef HVD_RUNTIME_NET_MESH_SIGNS_MESH_SIGNS_H_
#define HVD_RUNTIME_NET_MESH_SIGNS_MESH_SIGNS_H_

#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/net/mesh/signs/mesh_link.h"
#include "runtime/net/mesh/signs/mesh_silence.h"

namespace hvd {

class MeshSigns {
 public:
  void Put(std::vector<MeshSilence> silences, std::vector<MeshLink> links) {
    MutexLock lock(mutex_);
    silences_ = std::move(silences);
    links_ = std::move(links);
  }
  std::vector<MeshSilence> Silences() const {
    MutexLock lock(mutex_);
    return silences_;
  }
  std::vector<MeshLink> Links() const {
    MutexLock lock(mutex_);
    return links_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<MeshSilence> silences_ HVD_GUARDED_BY(mutex_);
  std::vector<MeshLink> links_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_SIGNS_MESH_SIGNS_H_
