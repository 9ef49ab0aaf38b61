// Parses the YAML output of IBM CSM's programs about an allocation: its compute nodes, and the
// resources of the first one, assumed equal on all. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_CSM_ALLOCATION_H_
#define HVD_DISCOVERY_ALLOCATIONS_CSM_ALLOCATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/host_spec.h"
#include "runtime/base/status.h"

namespace hvd {

struct CsmNodes {
  std::vector<std::string> names;  // sorted; at least one
  uint32_t isolated_cores = 0;     // per socket; reserved for the system
};
// From csm_allocation_query. kInvalidArgument: one sentence.
Result<CsmNodes> ReadCsmNodes(const std::string& text);

struct CsmAllocation {
  std::vector<HostSpec> hosts;
  std::string_view slots_are;  // "one per GPU"
};
// `node`: the answer of csm_node_attributes_query about the first. kInvalidArgument: one sentence.
Result<CsmAllocation> ReadCsmAllocation(CsmNodes nodes, const std::string& node);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_CSM_ALLOCATION_H_
