// The commands for agents on the nodes of Slurm's allocation, a step for one node or one for all of
// them, so that the agents and their workers are in the job's accounting and end with it; and the
// interpretation of srun's output. Pure.
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

// `left_out`: variables that srun must not inherit, because it reads options from them.
std::vector<std::string> SrunCommand(const SrunNode& node, const std::vector<std::string>& left_out,
                                     const std::string& remote_command);

ChannelEnd ReadSrunEnd(const CommandEnd& end);

// Assigns a step to each node: steps of 2 to `most` nodes of one component, of about equal size,
// numbered from 0. Nothing for an absent node, and for the only node of a component, which gets a
// step with its own stream.
std::vector<std::optional<uint32_t>> ShareSteps(const std::vector<std::optional<SrunNode>>& nodes,
                                                uint32_t most);
// One step with one task on each of these nodes of one component.
std::vector<std::string> SrunStepCommand(const std::vector<SrunNode>& nodes,
                                         const std::vector<std::string>& left_out,
                                         const std::string& remote_command);
// The end of this node or its task, from srun's output so far; nothing while they live, or if Slurm
// may print more in a moment.
std::optional<ChannelEnd> ParseSrunOutput(const std::string& printed, const std::string& node);
// What the end of the whole step means for this node. Empty reason: its task succeeded.
ChannelEnd ReadSrunStepEnd(const CommandEnd& end, const std::string& node);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SRUN_COMMAND_H_
