// CudaOp: an operation of this rank on a tensor in the memory of a GPU, and the cell by which its
// members tell each other more than their announcements did.
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

// In the lease of a member, behind the release flags. Written by that member only.
struct alignas(kCacheLine) CudaCell {
  // By NCCL, of member 0: the place of the operation among those of the lane; 0: it has none yet.
  std::atomic<uint64_t> order;
  // Staged: 1 once the rest is there, the announcement of the backend below.
  std::atomic<uint32_t> posted;
  uint32_t payload_bytes;
  uint64_t words[4];
  Location payload;
  // By NCCL. Where this member's TurnCell is.
  Location turn_cell;

  // Followed by the turn of each member, of the first operation of a batch; before `order`.
  uint64_t* turns() { return reinterpret_cast<uint64_t*>(this + 1); }

  static constexpr size_t BytesFor(uint32_t members) {
    return ReleaseFlagBytes(members) + sizeof(CudaCell) + members * sizeof(uint64_t);
  }
  static CudaCell& In(std::byte* control, uint32_t members) {
    return *reinterpret_cast<CudaCell*>(control + ReleaseFlagBytes(members));
  }
};

// A CrossHostRequest, kept.
struct HostsRequest {
  int32_t domain = 0;
  std::string name, detail;
  uint32_t part = 0, part_count = 1;
};

struct CudaOp final : OpState {
  enum class Stage {
    kRefused,   // this rank cannot do it, for the reason in `refusal`; or none can (`failure`)
    kPrepared,  // announced
    kAlone,     // given to the device, as it is
    kAgreeing,  // over several hosts: they have not agreed yet
    kAgreed,    // over several hosts: waits for its turn
    kLane,      // the lane has it
    kGiven,     // the lane has given it to the device
    kCopied,    // staged: the input is on its way to the host
    kPosted,    // staged: announced among the members again
    kHost,      // staged: the backend below is at work
    kDone,
  };

  Stage stage = Stage::kPrepared;
  std::string refusal;
  CudaDevice* device = nullptr;  // that of marks and staging
  int ordinal = 0;
  DeviceMark mark;
  uint64_t mark_number = 0;  // of this rank's marks, in the order in which they were made
  Lease lease;
  uint32_t self = 0, members = 1;
  bool across_hosts = false;  // then `self` and `members` are those of this host

  // From Start on.
  CollectiveCall call;
  CudaChoice choice;
  std::vector<std::byte*> controls;  // of the members' leases; null: not needed, or it has joined
  std::vector<uint8_t> joined;
  std::vector<int64_t> rows;                 // of each member's input: allgather
  std::vector<std::vector<int64_t>> splits;  // of each member: alltoall
  // By NCCL. Rows that each member of the set gives this one, in an allgather and an alltoall, and
  // those that this one gives, in an alltoall.
  std::vector<int64_t> received, sent;
  std::vector<uint32_t> call_numbers;  // of all members; empty: some has none
  NcclLane* lane = nullptr;
  DeviceTicket given;  // in the queue of the lane, where it is to be waited for
  std::unique_ptr<StagedOp> staged;
  // Over several hosts.
  std::unique_ptr<HostsAgreement> agreement;
  HostsRequest request;
  Status failure;

  // Keeps the parts of the members beyond the call.
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
  // This rank reads that member's lease no more.
  void Release(uint32_t member) const {
    ReleaseFlagOf(controls[member], self)->store(1, std::memory_order_release);
  }
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_CUDA_OP_H_
