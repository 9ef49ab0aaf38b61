// Gloo's collectives over one group of the mesh, with a Status for exceptions. One thread at a
// time.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_GLOO_COLLECTIVES_H_
#define HVD_RUNTIME_BACKENDS_GLOO_GLOO_COLLECTIVES_H_

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/backends/gloo/transport.h"
#include "runtime/backends/inter_host_comm.h"

namespace hvd {

class GlooCollectives {
 public:
  GlooCollectives(Mesh& mesh, const LeaderGroup& group);

  Status Broadcast(const InterHostCall& call, uint32_t root, void* data, size_t bytes);
  Status Allgatherv(const InterHostCall& call, const void* input, std::span<const size_t> bytes,
                    void* output);
  Status Alltoallv(const InterHostCall& call, const void* input, std::span<const size_t> send_bytes,
                   void* output, std::span<const size_t> receive_bytes);

 private:
  Status Run(const InterHostCall& call, const std::function<void()>& body);

  std::shared_ptr<MeshTransport> transport_;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_GLOO_COLLECTIVES_H_
