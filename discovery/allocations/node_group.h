// The same command on every node, as torchrun is started: in each pod of a TrainJob with a torch
// runtime, of a JobSet, of an indexed Job. The command line or the environment says how many nodes
// there are, which one this is, and where node 0 is, which leads. From
//
//   --nnodes, --node-rank, --master-addr, --master-port, --nproc-per-node   of the command line
//   HVD_NODES, HVD_NODE_RANK, HVD_LEADER                     HOST or HOST:PORT, of anybody's
//   PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT, PET_NPROC_PER_NODE   torchrun's
//   JOB_COMPLETION_INDEX, SLURM_NODEID                       the rank, where it is not said
//
// The first of these; options are facts under their names, "--nnodes" (OptionFacts).
//
// Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_NODE_GROUP_H_
#define HVD_DISCOVERY_ALLOCATIONS_NODE_GROUP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "discovery/allocations/allocation.h"
#include "runtime/base/status.h"

namespace hvd {

inline constexpr uint16_t kNodesPort = 29400;
inline constexpr const char* kJobKeyFile = "HVD_JOB_KEY_FILE";

struct NodeGroup {
  uint32_t nodes = 1, rank = 0;
  uint32_t least = 1;  // nodes without which an elastic job does not go on; `nodes`: a fixed size
  std::string leader;  // where node 0 is
  uint16_t port = kNodesPort;
  uint32_t slots = 0;              // of each node
  std::vector<std::string> names;  // of all nodes
  std::string said_by;             // the option or variable that has their number
};
// The options of the command line as facts; none where it does not ask for several nodes.
std::map<std::string, std::string> OptionFacts(const Settings& settings);
// Whether the command line itself says that there are other nodes.
bool NamesNodes(const AllocationFacts& facts);
// Nothing where no variable names one. kInvalidArgument: one sentence about what does not fit.
Result<std::optional<NodeGroup>> FindNodeGroup(const AllocationFacts& facts);
// The same as hosts, on every node alike; also one node whose processes are counted.
Result<std::optional<Allocation>> FindNodeAllocation(const AllocationFacts& facts);

// The key of a group: what all nodes have and nobody else, made of the text of the file that
// HVD_JOB_KEY_FILE names. kInvalidArgument: one sentence with the command that makes it.
Result<std::string> NodeKeyText(const AllocationFacts& facts, const NodeGroup& group);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_NODE_GROUP_H_
