// LeaderOp: an operation at the member that leads it on its host, from Start until the result is on
// the board. Made under the engine's lock, then used by the conductor's threads alone, in memory
// that outlives it.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_LEADER_OP_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_LEADER_OP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/backends/collective.h"
#include "runtime/backends/hosts/coordination_messages.h"
#include "runtime/backends/hosts/host_map.h"
#include "runtime/backends/hosts/local_sum.h"
#include "runtime/backends/hosts/result_status.h"

namespace hvd {

// One tensor of it.
struct LeaderTensor {
  CollectiveCall call;  // without the caller's memory and the group
  ResultStatus* result_status = nullptr;
  std::vector<const std::byte*>
      inputs;  // of the members here that take part, ascending; null where nothing is sent
  std::vector<std::vector<int64_t>>
      extents;  // of each of them. Allgather: rows; alltoall: rows for each member of the set
  LocalSum local_sum;
  std::byte* memory = nullptr;  // registered: the sum, then the result

  // With one rank a host a sum needs no memory in between: it goes from the caller's input to its
  // output.
  bool straight = false;
  const void* input = nullptr;
  void* output = nullptr;
  std::unique_ptr<std::byte[]> copy;  // in place of both, once the caller has taken them back

  const void* From() const { return straight ? input : memory; }
  void* To() const { return straight ? output : memory; }
};

struct LeaderOp {
  ReadyMessage ready;
  std::shared_ptr<const HostParts> hosts;  // of the set
  size_t set_size = 0;
  std::vector<std::shared_ptr<LeaderTensor>> parts;
  uint32_t last_here = 0;  // of a join

  // What the cross thread does with the memory of its callers; guarded by the conductor's lock.
  enum class Use : uint8_t { kNotYet, kInFlight, kOver };
  Use use = Use::kNotYet;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_LEADER_OP_H_
