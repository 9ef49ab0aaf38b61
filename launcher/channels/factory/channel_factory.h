// How the driver (or the doctor) reaches the agent of a host: the channel, the bundle and side
// commands. ChannelFactory is the interface that creates it.
#ifndef HVD_LAUNCHER_CHANNELS_FACTORY_CHANNEL_FACTORY_H_
#define HVD_LAUNCHER_CHANNELS_FACTORY_CHANNEL_FACTORY_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "discovery/host_slots.h"
#include "launcher/channels/bundle/bundle_source.h"
#include "launcher/channels/bundle/side_command.h"
#include "launcher/channels/host_channel.h"

namespace hvd {

struct HostTransport {
  std::unique_ptr<HostChannel> channel;
  // The line before the agent's first byte, after anything that a login shell prints; empty: no
  // shell.
  std::string greeting;
  // Serves a host that requests hvdrun before the greeting; null: hvdrun is never sent.
  std::shared_ptr<BundleSource> bundles;
  // Creates a separate channel to the same host for a side command, with hvdrun at the path that
  // its agent reported; null: not possible. `hvdrun agent --resume` prints the greeting, or
  // `no_agent_text`.
  std::function<std::unique_ptr<HostChannel>(SideCommand side_command, const AgentPath& there)>
      side_command;
  std::string no_agent_text;
};

class ChannelFactory {
 public:
  virtual ~ChannelFactory() = default;
  // For a host of the plan, by its number. The channels run on `io` and outlive neither it nor the
  // factory.
  virtual HostTransport Make(asio::io_context& io, uint32_t host) = 0;
  // Adds hosts with the next numbers, which will be opened together.
  virtual void Add(const std::vector<HostSlots>& hosts) = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_FACTORY_CHANNEL_FACTORY_H_
