// The InterHostComm of libhvd_gloo.so: Gloo's algorithms and a few direct ones over one mesh. See
// inter_host_comm.h for the contract.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_GLOO_INTER_HOST_COMM_H_
#define HVD_RUNTIME_BACKENDS_GLOO_GLOO_INTER_HOST_COMM_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "runtime/backends/gloo/allreduce_algorithm.h"
#include "runtime/backends/gloo/gloo_collectives.h"
#include "runtime/backends/gloo/large_sum.h"
#include "runtime/backends/gloo/scratch_pool.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/backends/inter_host_loader.h"
#include "runtime/base/message_bytes.h"
#include "runtime/base/mutex.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {

// The part for threads that must not block. Thread-safe.
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

class GlooInterHostComm final : public InterHostComm {
 public:
  static Result<std::unique_ptr<GlooInterHostComm>> Open(const InterHostOptions& options,
                                                         KvStore& directory);

  std::string_view name() const override { return "gloo"; }
  Status Allreduce(const InterHostCall& call, const ReduceSpec& spec, const void* input,
                   void* output, size_t count) override;
  Status Broadcast(const InterHostCall& call, uint32_t root, void* data, size_t bytes) override;
  Status Allgatherv(const InterHostCall& call, const void* input, std::span<const size_t> bytes,
                    void* output) override;
  Status Alltoallv(const InterHostCall& call, const void* input, std::span<const size_t> send_bytes,
                   void* output, std::span<const size_t> receive_bytes) override;
  Status Reducescatterv(const InterHostCall& call, const ReduceSpec& spec, const void* input,
                        std::span<const size_t> counts, void* output) override;
  Status Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
              TimePoint deadline) override;
  Result<InterHostMessage> Receive(uint32_t rank, uint64_t tag, TimePoint deadline) override;
  Result<InterHostMessage> Await(uint32_t rank, uint64_t tag, TimePoint deadline) override;
  void Wake() override { mesh_->Wake(); }
  bool CopiesByPart() const override { return true; }
  InterHostSteps* steps() override { return &steps_; }
  std::vector<InterHostSilence> Silences() const override;
  std::vector<InterHostLink> Links() const override;
  void Abort(const Status& why) override { mesh_->Abort(why); }

  // For measurements: a fixed algorithm, whatever the size.
  Status AllreduceBy(AllreduceAlgorithm algorithm, const InterHostCall& call,
                     const ReduceSpec& spec, const void* input, void* output, size_t count);

 private:
  explicit GlooInterHostComm(std::unique_ptr<Mesh> mesh)
      : mesh_(std::move(mesh)), steps_(*mesh_, scratch_) {}
  std::shared_ptr<GlooCollectives> Group(const LeaderGroup& group);
  Result<InterHostMessage> ReceiveMessage(uint32_t rank, uint64_t tag, TimePoint deadline,
                                          MeshPatience patience);

  std::unique_ptr<Mesh> mesh_;
  ScratchPool scratch_;
  GlooSteps steps_;
  Mutex mutex_;
  std::map<std::vector<uint32_t>, std::shared_ptr<GlooCollectives>> groups_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_GLOO_INTER_HOST_COMM_H_
