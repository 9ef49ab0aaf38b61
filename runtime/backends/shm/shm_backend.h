// ShmBackend: collectives among the members of a group on one host, in memory they all can reach.
//
// Small tensors travel inside the requests; every member combines all of them for itself, so that
// one exchange is enough. Larger ones are leased: read and combined in place in registered memory,
// otherwise in a registered copy. No rank waits for one that computes, except the owner of
// registered input for its readers. DESIGN.md has the picture.
#ifndef HVD_RUNTIME_BACKENDS_SHM_SHM_BACKEND_H_
#define HVD_RUNTIME_BACKENDS_SHM_SHM_BACKEND_H_

#include "runtime/backends/backend.h"
#include "runtime/backends/peers.h"
#include "runtime/backends/shm/buffer_leases.h"
#include "runtime/backends/shm/gather_stream.h"
#include "runtime/backends/shm/shm_op.h"
#include "runtime/backends/shm/staging_ring.h"
#include "runtime/segment/tuned_settings.h"

namespace hvd {

class ShmBackend final : public Backend {
 public:
  // `heap` is this rank's registered memory, `peer_memory` resolves that of the others; both
  // outlive the backend. Groups are on one host. `chunk_kib`: the largest chunk of an allreduce, 0
  // for the default; `tuned`, which may be null, takes precedence. `peers` are woken when an
  // operation has progress for them before its end; null: they poll. `ring_from`: bytes of the
  // smallest allreduce of private memory that uses a StagingRing if all wait; `stream_from`: of the
  // smallest input that uses a GatherStream if its owner waits; without it StreamCut::Pays decides.
  ShmBackend(SharedHeap& heap, SharedMemoryMap& peer_memory, uint32_t chunk_kib = 0,
             const TunedSettings* tuned = nullptr, Peers* peers = nullptr,
             size_t ring_from = StagingRing::kFrom, std::optional<size_t> stream_from = {})
      : leases_(heap),
        peer_memory_(peer_memory),
        chunk_kib_(chunk_kib),
        tuned_(tuned),
        peers_(peers),
        ring_from_(ring_from),
        stream_from_(stream_from) {}

  std::string_view name() const override { return "shm"; }

  Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                 BufferDescriptor* descriptor) override;
  bool IsExchange(const CollectiveCall& call) const override;
  void WorkAhead(const CollectiveCall& call, OpState* state) override;
  Result<bool> Start(const CollectiveCall& call, OpState* state,
                     const MemberInputs& parts) override;
  Result<bool> Advance(const CollectiveCall& call, OpState* state) override;
  bool Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const override;
  std::string Awaits(const CollectiveCall& call, const OpState* state) const override;
  AwaitedRanks AwaitedBy(const CollectiveCall& call, const OpState* state) const override;
  void Withdraw(const CollectiveCall&, const OpState*, std::string) override {}
  void Abandon(std::unique_ptr<OpState> state, bool peers_may_work) override;
  void Abort(const Status&) override {}

 private:
  uint32_t ChunkKib() const;
  void WakePeersFor(ShmOp& op);

  BufferLeases leases_;
  SharedMemoryMap& peer_memory_;
  const uint32_t chunk_kib_;
  const TunedSettings* const tuned_;
  Peers* const peers_;
  const size_t ring_from_;
  const std::optional<size_t> stream_from_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_SHM_BACKEND_H_
