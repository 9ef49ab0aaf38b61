// Interprets the end of a program through which an agent ran: the part common to all such programs.
// Pure.
#ifndef HVD_LAUNCHER_CHANNELS_COMMAND_END_H_
#define HVD_LAUNCHER_CHANNELS_COMMAND_END_H_

#include <string>

#include "launcher/channels/command_channel.h"

namespace hvd {

// The last lines that are not noise, safe to print.
std::string LastOutput(const std::string& printed);
// A message on the agent's own end, if the program passes exit codes through; empty: it succeeded.
std::string EndOfAgent(const CommandEnd& end);
// The same as the end of a channel in `stage`.
ChannelEnd EndOfAgentIn(ChannelStage stage, const CommandEnd& end);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_COMMAND_END_H_
