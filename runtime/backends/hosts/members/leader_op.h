// LeaderOp: an operation at the member that leads it on its host, from Start until its result is
// published. Created under the engine's lock, then used only by the threads of the
// HostLeaderService, in memory that outlives it.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_LEADER_OP_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_LEADER_OP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/backends/collective.h"
#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/host_map.h"
#include "runtime/backends/hosts/members/local_sum.h"
#include "runtime/backends/hosts/members/result_status.h"

namespace hvd {

// One tensor of a LeaderOp.
struct LeaderTensor {
  CollectiveCall call;  // without the caller's memory and the group
  ResultStatus* result_status = nullptr;
  // Of the participating members on this host, ascending. Null if nothing is sent.
  std::vector<const std::byte*> inputs;
  // Of each of these members. Allgather: rows; alltoall: rows for each member of the set.
  std::vector<std::vector<int64_t>> extents;
  LocalSum local_sum;
  std::byte* memory = nullptr;  // registered: the sum, then the result

  // With one rank per host a sum needs no intermediate memory: it goes from the caller's input to
  // its output.
  bool straight = false;
  const void* input = nullptr;
  void* output = nullptr;
  std::unique_ptr<std::byte[]> copy;  // instead of both, once the caller's call has returned

  const void* From() const { return straight ? input : memory; }
  void* To() const { return straight ? output : memory; }
};

struct LeaderOp {
  ReadyMessage ready;                      // without the sum, once that is sent
  size_t offered_bytes = 0;                // of that sum
  std::shared_ptr<const HostParts> hosts;  // of the set
  size_t set_size = 0;
  std::vector<std::shared_ptr<LeaderTensor>> parts;
  uint32_t last_here = 0;  // of a join
  // For the timeline; used by the thread that has the operation. Nothing: not recorded.
  std::optional<ActivityNotes> activities;

  // World ranks: the first member on each host, in order of hosts.
  std::vector<uint32_t> FirstMembers() const {
    std::vector<uint32_t> ranks;
    ranks.reserve(hosts->parts.size());
    for (const HostParts::Part& part : hosts->parts) {
      const uint32_t member = part.members[0];
      ranks.push_back(ready.ranks.empty() ? member : ready.ranks[member]);
    }
    return ranks;
  }

  void Begin(const ActivityNote& note) {
    if (activities) activities->Begin(note);
  }

  // The inter-host thread's use of the callers' memory. Guarded by HostLeaderService::mutex_.
  enum class Use : uint8_t { kNotYet, kInFlight, kOver };
  Use use = Use::kNotYet;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_LEADER_OP_H_
