// The transfers of one collective between leaders, and the order in which their parts are added.
// Used by one thread.
#ifndef HVD_RUNTIME_BACKENDS_GLOO_TRANSFERS_H_
#define HVD_RUNTIME_BACKENDS_GLOO_TRANSFERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/align.h"
#include "runtime/net/mesh/mesh.h"

namespace hvd {

// Distinct from the slots of Gloo, which has less than 16 in the highest byte.
inline constexpr uint64_t kScatterSlot = uint64_t{0x40} << 56;
inline constexpr uint64_t kGatherSlot = uint64_t{0x41} << 56;

inline size_t MostStripes(const InterHostCall& call) {
  return std::clamp<size_t>(call.cut.stripes, 1, kMostMeshStripes);
}

// Transfers that are awaited together. Must not outlive the memory that they use.
class Transfers {
 public:
  // `call` outlives it.
  Transfers(Mesh& mesh, const InterHostCall& call) : mesh_(mesh), call_(call) {}

  void Send(MeshStart& start, uint32_t leader, uint64_t slot, const std::byte* data, size_t bytes) {
    ForStripes(bytes, [&](uint32_t stripe, size_t first, size_t count) {
      handles_.push_back(
          start.Send(RankOf(leader), {call_.tag, slot}, {data + first, count}, stripe));
    });
  }
  void Receive(MeshStart& start, uint32_t leader, uint64_t slot, std::byte* data, size_t bytes) {
    ForStripes(bytes, [&](uint32_t stripe, size_t first, size_t count) {
      handles_.push_back(
          start.Receive(RankOf(leader), {call_.tag, slot}, {data + first, count}, stripe));
    });
  }
  // The same through a consumer for each stripe, which is given its first byte and outlives this.
  template <typename ConsumerOf>
  void Receive(MeshStart& start, uint32_t leader, uint64_t slot, size_t bytes,
               ConsumerOf consumer_of) {
    ForStripes(bytes, [&](uint32_t stripe, size_t first, size_t count) {
      handles_.push_back(start.Receive(RankOf(leader), {call_.tag, slot},
                                       consumer_of(stripe, first), count, stripe));
    });
  }
  // kInProgress at the deadline.
  Status WaitUntil(TimePoint deadline, MeshAfter after = MeshAfter::kGoes) {
    Status done = mesh_.WaitAll(handles_, deadline, call_.group.leaders, after);
    if (done.ok()) handles_.clear();
    return done;
  }
  // Waits as long as anything moves.
  Status WaitAll(MeshAfter after = MeshAfter::kGoes) {
    Status done = mesh_.WaitWhileMoving(handles_, call_.idle_limit, call_.group.leaders, after);
    if (done.ok()) handles_.clear();
    return done;
  }

 private:
  // Less is not worth a separate message.
  static constexpr size_t kLeastStripeBytes = 64 * 1024;
  static constexpr size_t kStripeAlignment = 64;

  uint32_t RankOf(uint32_t leader) const { return call_.group.leaders[leader]; }

  // The part of each stripe: both sides know the size and split alike, between elements.
  template <typename Visitor>
  void ForStripes(size_t bytes, Visitor visit) const {
    const size_t stripes = std::clamp<size_t>(bytes / kLeastStripeBytes, 1, MostStripes(call_));
    const size_t share = RoundUp((bytes + stripes - 1) / stripes, kStripeAlignment);
    uint32_t stripe = 0;
    for (size_t first = 0; first < bytes; first += share) {
      visit(stripe++, first, std::min(share, bytes - first));
    }
  }

  Mesh& mesh_;
  const InterHostCall& call_;
  std::vector<MeshHandle> handles_;
};

inline uint32_t LeadersOf(const InterHostCall& call) {
  return static_cast<uint32_t>(call.group.leaders.size());
}

// Visits the other leaders, beginning with the next, so that not all begin with the same.
template <typename Visitor>
void ForOthers(const InterHostCall& call, Visitor visit) {
  const uint32_t size = LeadersOf(call);
  for (uint32_t step = 1; step < size; ++step) visit((call.group.index + step) % size);
}

// Offset of another leader's part in scratch, where the parts are contiguous.
inline size_t ScratchPlace(const InterHostCall& call, uint32_t leader, size_t bytes) {
  return (leader < call.group.index ? leader : leader - 1) * bytes;
}

// Adds up the parts of all leaders, in their order: this one's own, and the others', of this many
// bytes each, in scratch.
inline void AddUp(const InterHostCall& call, const ReduceSpec& spec, const void* own,
                  const std::byte* scratch, void* output, size_t count) {
  const size_t bytes = count * SizeOf(spec.dtype);
  std::vector<const void*> parts(LeadersOf(call));
  for (uint32_t i = 0; i < parts.size(); ++i) {
    parts[i] = i == call.group.index ? own : scratch + ScratchPlace(call, i, bytes);
  }
  ReduceRange(spec, parts, {&output, 1}, 0, count);
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_GLOO_TRANSFERS_H_
