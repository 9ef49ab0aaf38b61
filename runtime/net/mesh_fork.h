// A forked child holds nothing of the mesh: its copies of the sockets would keep connections open after this process has
// died. Handlers of pthread_atfork close them in the child; nobody is inside a mesh while the process is copied.
#ifndef HVD_RUNTIME_NET_MESH_FORK_H_
#define HVD_RUNTIME_NET_MESH_FORK_H_

namespace hvd {

class Mesh;

class MeshForkGuard {
 public:
  static void Add(Mesh* mesh);
  static void Remove(Mesh* mesh);

 private:
  static void BeforeFork();
  static void InParent();
  static void InChild();
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_FORK_H_
