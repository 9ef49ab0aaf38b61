// RetryingChannel: a channel to a host that may not be there yet: one that ends for a transient
// reason (late_host.h) is replaced by a new one until the owner closes or kills it. The owner gets
// each such end by OnTrouble, and sets the limits. Bytes written before the host's first one are
// rewritten. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_CHANNELS_RETRYING_CHANNEL_H_
#define HVD_LAUNCHER_CHANNELS_RETRYING_CHANNEL_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>

#include "launcher/channels/host_channel.h"

namespace hvd {

class RetryingChannel final : public HostChannel {
 public:
  using MakeChannel = std::function<std::unique_ptr<HostChannel>()>;

  // `servers_come_late`: also while no server answers at the host's address.
  RetryingChannel(asio::io_context& io, MakeChannel make, bool servers_come_late = false);
  ~RetryingChannel() override;

  void Open(ChannelObserver& observer) override;
  size_t Write(std::string_view bytes) override;
  void Close() override;
  void Kill() override;

 private:
  class Tries;
  std::shared_ptr<Tries> tries_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_RETRYING_CHANNEL_H_
