// The Cross of libhvd_gloo.so: Gloo's algorithms and a few direct ones over one mesh. See cross.h for what is promised.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_GLOO_CROSS_H_
#define HVD_RUNTIME_BACKENDS_GLOO_GLOO_CROSS_H_

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/backends/cross.h"
#include "runtime/backends/cross_loader.h"
#include "runtime/backends/gloo/gloo_collectives.h"
#include "runtime/backends/gloo/scratch_pool.h"
#include "runtime/net/mesh.h"

namespace hvd {

enum class AllreduceWay { kDirect, kSliced };
// By size and number of leaders; pure.
AllreduceWay ChooseAllreduce(size_t bytes, size_t leaders);

class GlooCross final : public Cross {
 public:
  static Result<std::unique_ptr<GlooCross>> Open(const CrossOptions& options, Directory& directory);

  std::string_view name() const override { return "gloo"; }
  Status Allreduce(const CrossCall& call, const ReduceSpec& spec, const void* input, void* output,
                   size_t count) override;
  Status Broadcast(const CrossCall& call, uint32_t root, void* data, size_t bytes) override;
  Status Allgatherv(const CrossCall& call, const void* input, std::span<const size_t> bytes,
                    void* output) override;
  Status Alltoallv(const CrossCall& call, const void* input, std::span<const size_t> send_bytes,
                   void* output, std::span<const size_t> receive_bytes) override;
  Status Reducescatterv(const CrossCall& call, const ReduceSpec& spec, const void* input,
                        std::span<const size_t> counts, void* output) override;
  Status Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
              TimePoint deadline) override;
  Result<CrossMessage> Receive(uint32_t rank, uint64_t tag, TimePoint deadline) override;
  void Wake() override { mesh_->Wake(); }
  std::vector<CrossSilence> Silences() const override;
  void Abort(const Status& why) override { mesh_->Abort(why); }

  // For measurements: one way, whatever the size.
  Status AllreduceBy(AllreduceWay way, const CrossCall& call, const ReduceSpec& spec,
                     const void* input, void* output, size_t count);

 private:
  explicit GlooCross(std::unique_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}
  std::shared_ptr<GlooCollectives> Group(const CrossGroup& group);

  std::unique_ptr<Mesh> mesh_;
  ScratchPool scratch_;
  std::mutex mutex_;  // guards groups_
  std::map<std::vector<uint32_t>, std::shared_ptr<GlooCollectives>> groups_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_GLOO_CROSS_H_
