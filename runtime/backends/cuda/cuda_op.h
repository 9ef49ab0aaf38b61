// CudaOp: an operation of this rank on a tensor in GPU memory, and the cell in which its members
// exchange more than in their announcements.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_CUDA_OP_H_
#define HVD_RUNTIME_BACKENDS_CUDA_CUDA_OP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/cuda/hosts_agreement.h"
#include "runtime/backends/cuda/member_facts.h"
#include "runtime/backends/cuda/staged_op.h"
#include "runtime/backends/shm/buffer_leases.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/segment/job_page.h"

namespace hvd {

class NcclLane;

// In the lease of a member, after the release flags. Written by that member only.
struct alignas(kCacheLine) CudaCell {
  // NCCL, member 0: the operation's place among those of the lane; 0: none yet.
  std::atomic<uint64_t> order;
  // Staged: 1 once the rest, the announcement of the backend below, is written.
  std::atomic<uint32_t> posted;
  uint32_t payload_bytes;
  uint64_t words[4];
  Location payload;
  // NCCL: where this member's TurnCell is.
  Location turn_cell;

  // Followed by the turn of each member, for the first operation of a batch; written before
  // `order`.
  uint64_t* turns() { return reinterpret_cast<uint64_t*>(this + 1); }

  static constexpr size_t BytesFor(uint32_t members) {
    return ReleaseFlagBytes(members) + sizeof(CudaCell) + members * sizeof(uint64_t);
  }
  static CudaCell& In(std::byte* control, uint32_t members) {
    return *reinterpret_cast<CudaCell*>(control + ReleaseFlagBytes(members));
  }
};

// An InterHostRequest, kept.
struct HostsRequest {
  int32_t domain = 0;
  std::string name, detail;
  uint32_t part = 0, part_count = 1;
};

struct CudaOp final : OpState {
  enum class Stage {
    kRefused,   // this rank cannot do it, for the reason in `refusal`; or none can (`failure`)
    kPrepared,  // announced
    kAlone,     // given to the device directly
    kAgreeing,  // over several hosts: not agreed yet
    kAgreed,    // over several hosts: waits for its turn
    kLane,      // the lane has it
    kGiven,     // the lane has given it to the device
    kCopied,    // staged: the input is being copied to the host
    kPosted,    // staged: announced to the members again
    kHost,      // staged: the backend below is working
    kDone,
  };

  Stage stage = Stage::kPrepared;
  std::string refusal;
  CudaDevice* device = nullptr;  // that of marks and staging
  int ordinal = 0;
  DeviceMark mark;
  uint64_t mark_number = 0;  // of this rank's marks, in order of creation
  Lease lease;
  uint32_t self = 0, members = 1;
  bool across_hosts = false;  // then `self` and `members` are those of this host

  // From Start on.
  CollectiveCall call;
  CudaChoice choice;
  std::vector<std::byte*>
      controls;  // of the members' leases; null: not needed, or the member has joined
  std::vector<uint8_t> joined;
  std::vector<int64_t> rows;                 // of each member's input: allgather
  std::vector<std::vector<int64_t>> splits;  // of each member: alltoall
  // NCCL: rows from each member of the set to this one, in an allgather and an alltoall, and from
  // this one to each, in an alltoall.
  std::vector<int64_t> received, sent;
  std::vector<uint32_t> call_numbers;  // of all members; empty: some member has none
  NcclLane* lane = nullptr;
  DeviceTicket given;  // in the queue of the lane, to wait for it
  std::unique_ptr<StagedOp> staged;
  // Over several hosts.
  std::unique_ptr<HostsAgreement> agreement;
  HostsRequest request;
  Status failure;

  // Keeps the members' parts beyond the call.
  void KeepParts(const MemberInputs& parts) {
    controls.assign(members, nullptr);
    joined.assign(parts.joined.begin(), parts.joined.end());
    for (const Extent& extent : parts.extents) {
      rows.push_back(extent.rows);
      splits.emplace_back(extent.splits.begin(), extent.splits.end());
    }
  }
  bool HasJoined(uint32_t member) const { return !joined.empty() && joined[member] != 0; }
  CudaCell& cell(uint32_t member) const { return CudaCell::In(controls[member], members); }
  // This rank no longer reads that member's lease.
  void Release(uint32_t member) const {
    ReleaseFlagOf(controls[member], self)->store(1, std::memory_order_release);
  }
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CUDA_OP_H_
