// ShmOp: one operation of this rank in shared memory, from Prepare to its end. ShmBackend chooses
// its kind.
#ifndef HVD_RUNTIME_BACKENDS_SHM_SHM_OP_H_
#define HVD_RUNTIME_BACKENDS_SHM_SHM_OP_H_

#include <memory>
#include <optional>

#include "runtime/backends/backend.h"
#include "runtime/backends/shm/buffer_leases.h"

namespace hvd {

// The parts that the operations of one backend share.
struct ShmRoom {
  BufferLeases& leases;
  SharedMemoryMap& peer_memory;
  uint32_t chunk_kib = 0;  // what this rank proposes: see LeaseDescriptor
  size_t ring_from = 0;    // bytes of the smallest allreduce that uses a StagingRing
  // And of the smallest input that uses a GatherStream; without it StreamCut::Pays decides.
  std::optional<size_t> stream_from;
};

// The calls are those of Backend; `member` is an index in Group::local.
class ShmOp : public OpState {
 public:
  virtual Result<BufferDescriptor> Prepare(const CollectiveCall& call) = 0;
  virtual void WorkAhead(const CollectiveCall&) {}
  virtual Result<bool> Start(const CollectiveCall& call, const MemberInputs& parts) = 0;
  virtual Result<bool> Advance(const CollectiveCall& call) = 0;
  // True once after Start or Advance has stored something that other members wait for.
  virtual bool PopPublished() = 0;
  virtual bool Needs(uint32_t member) const = 0;
  // True while this started operation cannot end before that member continues what it has begun.
  virtual bool AwaitsPartOf(uint32_t member) const = 0;
  // Requires that no peer uses anything of this operation, now or later.
  virtual void Reclaim() = 0;
};

std::unique_ptr<ShmOp> MakeGatherOp(ShmRoom room);
std::unique_ptr<ShmOp> MakeAllreduceOp(ShmRoom room);

// The largest tensor that travels in the request: every rank reads every payload, so the limit
// shrinks with the number of members.
inline constexpr size_t kLargestPayload = 8192;
constexpr bool FitsRequest(size_t bytes, uint32_t members) {
  constexpr size_t kAlways = 512;
  return bytes <= kAlways || (bytes <= kLargestPayload && bytes <= 16384 / members);
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_SHM_OP_H_
