// The same command on every node, as torchrun is started: in each pod of a TrainJob with a torch
// runtime, of a JobSet, of an indexed Job. The command line or the environment has the number of
// nodes, the rank of this one, and the address of node 0, which leads. From
//
//   --nnodes, --node-rank, --master-addr, --master-port, --nproc-per-node   of the command line
//   HVD_NODES, HVD_NODE_RANK, HVD_LEADER                     HOST or HOST:PORT, of anybody's
//   PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT, PET_NPROC_PER_NODE,
//   PET_RDZV_ENDPOINT                                        torchrun's
//   JOB_COMPLETION_INDEX, SLURM_NODEID                       the rank, where it is not said
//
// The first of these that is set wins; options are looked up by name, "--nnodes" (OptionFacts).
// Without a rank, as under torchrun with a rendezvous, the machine with the leader's address is
// node 0, and gives the others theirs.
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
  uint32_t nodes = 1;
  std::optional<uint32_t> rank;  // nothing: this machine was not given one
  uint32_t least = 1;  // minimum of nodes for an elastic job; equal to `nodes`: fixed size
  std::string leader;  // address of node 0
  uint16_t port = kNodesPort;
  uint32_t slots = 0;              // of each node
  std::vector<std::string> names;  // of all nodes
  std::string said_by;             // the option or variable with the number of nodes
};
// The options of the command line by name; empty if it does not request several nodes.
std::map<std::string, std::string> OptionFacts(const Settings& settings);
// Whether the command line itself names other nodes.
bool NamesNodes(const AllocationFacts& facts);
// Nothing if no variable is set. kInvalidArgument: one sentence about the contradiction.
Result<std::optional<NodeGroup>> FindNodeGroup(const AllocationFacts& facts);
// The same as an allocation, equal on every node; also for a single node with a number of
// processes.
Result<std::optional<Allocation>> FindNodeAllocation(const AllocationFacts& facts);

// The key of a group: a secret shared by its nodes, derived from the file named by
// HVD_JOB_KEY_FILE. kInvalidArgument: one sentence with the command that creates the file.
Result<std::string> NodeKeyText(const AllocationFacts& facts, const NodeGroup& group);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_NODE_GROUP_H_
