// The facts about its GPU that each member of a process set announces with every operation, and the
// route that follows from them: the same on all members, since all have the same facts. Pure
// functions.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_MEMBER_FACTS_H_
#define HVD_RUNTIME_BACKENDS_CUDA_MEMBER_FACTS_H_

#include <cstdint>
#include <span>
#include <string>

#include "runtime/backends/backend.h"
#include "runtime/backends/cuda/host_note.h"
#include "runtime/backends/nccl/nccl_types.h"
#include "runtime/base/status.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

struct MemberFacts {
  int nccl_version = 0;        // 0: it has none
  int compute_capability = 0;  // 90 for sm_90
  uint64_t place = 0;          // equal for members on one GPU
  Location control;            // of its lease, with a CudaCell
  uint32_t call_number = 0;    // CallNumbers; 0: it has none, or no CUDA graphs
};

// In the words of a descriptor, which has no payload.
BufferDescriptor DescriptorOf(const MemberFacts& facts);
MemberFacts FactsIn(const BufferDescriptor& descriptor);

enum class CudaRoute {
  kAlone,   // a set of one: by the batched kernel
  kNccl,    // by NCCL
  kStaged,  // through the memory of the host
};

struct CudaChoice {
  CudaRoute route = CudaRoute::kStaged;
  NcclAbilities abilities;  // those that all members have
  std::string why;          // staged: the reason
};

// `facts` by member; those of joined members are unused.
CudaChoice ChooseRoute(const CollectiveCall& call, std::span<const MemberFacts> facts,
                       std::span<const uint8_t> joined);

// Over several hosts: the note of a host whose participating members have these facts and ranks.
HostNote NoteOfHost(std::span<const MemberFacts> facts, std::span<const uint32_t> ranks);
// `notes` in order of hosts. kUnsupported, with its message, if a host refuses.
Result<CudaChoice> ChooseRouteAcrossHosts(const CollectiveCall& call,
                                          std::span<const HostNote> notes, uint32_t participants);

// The reason with which a member without a usable NCCL puts all on the staged route.
std::string NoNcclReason(uint32_t rank);

// How a call of NCCL reduces, for StepsOfReduction.
NcclReduction ReductionOf(const CollectiveCall& call);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_MEMBER_FACTS_H_
