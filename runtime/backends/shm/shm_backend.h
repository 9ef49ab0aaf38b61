// ShmBackend: collectives among the ranks of one host, in memory they all can reach.
//
// Small tensors travel inside the requests; every rank combines all of them for itself, so that one exchange is enough.
// Larger ones are combined where they are: in registered memory directly, otherwise in a registered copy. The work is cut
// into chunks that any waiting rank may take, so a rank that computes or sleeps holds up nobody, and each chunk adds the
// ranks in rank order, so the result does not depend on who did it. README.md has the picture.
#ifndef HVD_RUNTIME_BACKENDS_SHM_SHM_BACKEND_H_
#define HVD_RUNTIME_BACKENDS_SHM_SHM_BACKEND_H_

#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/device/host_reduce.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class ShmBackend final : public Backend {
 public:
  // `heap` is this rank's registered memory, `peer_memory` finds that of the others; both outlive the backend.
  ShmBackend(uint32_t rank, uint32_t size, SharedHeap& heap, SharedMemoryMap& peer_memory);
  ~ShmBackend() override;

  std::string_view name() const override { return "shm"; }
  Status Viable() const override { return Status::Ok(); }
  Abilities abilities() const override { return {.abort = true, .reform = true}; }

  Result<Offer> Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state) override;
  Result<bool> Start(const CollectiveCall& call, OpState* state,
                     std::span<const Offer> offers) override;
  Result<bool> Advance(const CollectiveCall& call, OpState* state) override;
  bool Needs(const CollectiveCall& call, const OpState* state, uint32_t peer) const override;
  void Abandon(std::unique_ptr<OpState> state, bool peers_may_work) override;

 private:
  struct Lane;
  struct SharedOp;
  // Memory that peers may still use although the operation is over here; freed once all have left it.
  struct Retired {
    Lane* lanes;
    void* staging;  // or nullptr
  };

  bool IsInline(const CollectiveCall& call) const;
  bool SendsData(const CollectiveCall& call) const;
  uint32_t LeaderOf(const CollectiveCall& call) const;
  ReduceSpec SpecOf(const CollectiveCall& call) const;
  Offer PrepareInline(const CollectiveCall& call) const;
  void FinishInline(const CollectiveCall& call, std::span<const Offer> offers);
  Result<Offer> PrepareShared(const CollectiveCall& call, std::unique_ptr<OpState>* state);
  Status OfferData(const CollectiveCall& call, SharedOp& op, Offer* offer);
  Status OfferLanes(SharedOp& op, Offer* offer);
  Status Attach(const CollectiveCall& call, SharedOp& op, std::span<const Offer> offers);
  bool AdvanceAllreduce(const CollectiveCall& call, SharedOp& op);
  void ReduceChunk(const CollectiveCall& call, SharedOp& op, uint32_t lane, uint32_t chunk);
  bool AdvanceBroadcast(const CollectiveCall& call, SharedOp& op);
  bool AllOthersLeft(const Lane* lanes) const;
  void Retire(SharedOp& op, void* staging);
  void FreeRetired();

  uint32_t rank_;
  uint32_t size_;
  size_t inline_limit_bytes_;
  SharedHeap& heap_;
  SharedMemoryMap& peer_memory_;
  std::vector<Retired> retired_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_SHM_BACKEND_H_
