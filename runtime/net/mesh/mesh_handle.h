// MeshHandle: one Send or Receive of a Mesh in progress.
#ifndef HVD_RUNTIME_NET_MESH_MESH_HANDLE_H_
#define HVD_RUNTIME_NET_MESH_MESH_HANDLE_H_

#include <memory>
#include <utility>

#include "runtime/net/mesh/mesh_boxes.h"

namespace hvd {

class Mesh;

// Dropping it cancels the transfer, which closes the connection if some of its bytes are in flight,
// so that no thread touches its memory afterwards. Not used by two threads at once; the mesh
// outlives it.
class MeshHandle {
 public:
  MeshHandle() = default;
  MeshHandle(MeshHandle&& other) noexcept = default;
  MeshHandle& operator=(MeshHandle&& other) noexcept;
  ~MeshHandle() { GiveUp(); }

 private:
  friend class Mesh;
  friend class MeshStart;
  friend struct MeshWaiter;
  MeshHandle(Mesh* mesh, std::unique_ptr<MeshTransfer> transfer)
      : mesh_(mesh), transfer_(std::move(transfer)) {}
  void GiveUp();

  Mesh* mesh_ = nullptr;
  std::unique_ptr<MeshTransfer> transfer_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_HANDLE_H_
