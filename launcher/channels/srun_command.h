// The commands for agents on the nodes of Slurm's allocation, a step for one node or one for all of
// them, so that the agents and their workers are in the job's accounting and end with it; and the
// meaning of srun's words. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_SRUN_COMMAND_H_
#define HVD_LAUNCHER_CHANNELS_SRUN_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/channels/command_channel.h"

namespace hvd {

struct SrunNode {
  std::string name;
  std::optional<uint32_t> component;  // of a heterogeneous job
};

// `left_out`: the variables that srun must not inherit, because it would take them for its options.
std::vector<std::string> SrunCommand(const SrunNode& node, const std::vector<std::string>& left_out,
                                     const std::string& remote_command);

ChannelEnd ReadSrunEnd(const CommandEnd& end);

// Which step starts the agent of each node: steps of at most `most` nodes (at least 2) of one
// component, about equally many in each, numbered from 0. Nothing for no node, and for the only one
// of its component, whose step has a stream for it alone.
std::vector<std::optional<uint32_t>> ShareSteps(const std::vector<std::optional<SrunNode>>& nodes,
                                                uint32_t most);
// One step with a task on each of these nodes, which are of one component.
std::vector<std::string> SrunStepCommand(const std::vector<SrunNode>& nodes,
                                         const std::vector<std::string>& left_out,
                                         const std::string& remote_command);
// The end of this node or of its task by the words of srun so far; nothing as long as they live,
// and where Slurm may say more in a moment.
std::optional<ChannelEnd> ParseSrunOutput(const std::string& said, const std::string& node);
// The meaning of the end of the whole step for this node. No reason: its task ended well.
ChannelEnd ReadSrunStepEnd(const CommandEnd& end, const std::string& node);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SRUN_COMMAND_H_
