// How a program behind which an agent ran has ended: the part that all such programs have in
// common. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_COMMAND_END_H_
#define HVD_LAUNCHER_CHANNELS_COMMAND_END_H_

#include <string>

#include "launcher/channels/command_channel.h"

namespace hvd {

// The last lines that are no chatter, safe to print.
std::string LastOutput(const std::string& said);
// The words for an agent's own end as seen through a program that passes exit codes on; empty: it
// ended well.
std::string EndOfAgent(const CommandEnd& end);
// The same as the end of a channel in `stage`.
ChannelEnd EndOfAgentIn(ChannelStage stage, const CommandEnd& end);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_COMMAND_END_H_
