// Results: which part of the leader's result a member copies, and where it is.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULTS_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/backends/collective.h"
#include "runtime/backends/hosts/coordination/host_map.h"

namespace hvd {

// Bytes [source, source + bytes) of the data behind the table go to `target` of the output.
struct ResultPiece {
  size_t source = 0, target = 0, bytes = 0;
  bool operator==(const ResultPiece&) const = default;
};

struct ResultPlan {
  std::vector<ResultPiece> pieces;
  size_t bytes = 0;  // of the output
  int64_t rows = 0;
  std::vector<int64_t> received_splits;
};

// `table`: written by the leader before the data. Allgather: rows of each member of the set;
// alltoall: for each member here, the rows from each member of the set; otherwise nothing. `here`
// is the index of this host in `hosts`.
ResultPlan PlanResult(const CollectiveCall& call, const HostParts& hosts, size_t here,
                      std::span<const int64_t> table);

// Bytes of the rows that the members of `part` get from a reducescatter.
size_t ScatteredBytes(const CollectiveCall& call, const HostParts::Part& part, size_t set_size);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_MEMBERS_RESULTS_H_
