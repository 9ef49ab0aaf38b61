// GlooSteps: the part of GlooInterHostComm for threads that must not block. Thread-safe.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_GLOO_STEPS_H_
#define HVD_RUNTIME_BACKENDS_GLOO_GLOO_STEPS_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "runtime/backends/gloo/scratch_pool.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/message_bytes.h"
#include "runtime/base/mutex.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {

class GlooSteps final : public InterHostSteps {
 public:
  // Both outlive it.
  GlooSteps(Mesh& mesh, ScratchPool& scratch) : mesh_(mesh), scratch_(scratch) {}

  Status Post(uint32_t rank, uint64_t tag, MessageBytes bytes) override;
  Status Flush(TimePoint deadline) override;
  size_t MostSumBytes(size_t) const override { return SIZE_MAX; }
  std::unique_ptr<InterHostSum> BeginSum(const InterHostCall& call, const ReduceSpec& spec,
                                         const void* input, void* output, size_t count) override;

 private:
  struct Posted {
    MessageBytes bytes;
    MeshHandle handle;  // must not outlive the bytes
  };
  Status DropGone() HVD_REQUIRES(mutex_);

  Mesh& mesh_;
  ScratchPool& scratch_;
  Mutex mutex_;
  std::deque<std::unique_ptr<Posted>> posted_ HVD_GUARDED_BY(mutex_);  // not known to be sent
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_GLOO_STEPS_H_
