// Gloo's transport over our mesh: its algorithms run over connections that are authenticated, made
// when first used, and abandoned at once on an abort. Supports only the unbound buffers of Gloo's
// newer collectives.
//
// A context belongs to one group and one thread at a time; Begin identifies the next operation.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_TRANSPORT_H_
#define HVD_RUNTIME_BACKENDS_GLOO_TRANSPORT_H_

#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/idle_limit.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {

class MeshTransport final : public gloo::transport::Context {
 public:
  MeshTransport(Mesh& mesh, std::vector<uint32_t> leaders, uint32_t index);

  // All following messages carry `channel`; no wait outlasts `idle_limit` without a byte
  // (InterHostCall).
  void Begin(uint64_t channel, Duration idle_limit);
  // Why the operation failed, which Gloo's exceptions do not say.
  const Status& failure() const { return failure_; }

  MeshHandle Send(int rank, uint64_t slot, const void* data, size_t bytes);
  MeshHandle Receive(int rank, uint64_t slot, void* data, size_t bytes);
  // Throws gloo::IoException when the transfer fails.
  void Wait(MeshHandle handle);

  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override;
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data,
                                                                      size_t bytes) override;

 private:
  Mesh& mesh_;
  const std::vector<uint32_t> leaders_;
  uint64_t channel_ = 0;
  Duration idle_limit_ = kNoLimit;
  Status failure_;
};

// The context passed to Gloo's collectives.
class GlooContext final : public gloo::Context {
 public:
  explicit GlooContext(std::shared_ptr<MeshTransport> transport);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_TRANSPORT_H_
