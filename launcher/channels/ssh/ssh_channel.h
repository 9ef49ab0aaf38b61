// SshChannel: an agent on another host, by SSH inside this process: no ssh program, no thread, no
// prompt. All channels of a process run in the thread of the io_context. ssh_session has the
// protocol, byte_pump the socket; this is the sequence of steps, as one coroutine.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_CHANNEL_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_CHANNEL_H_

#include <memory>
#include <string>

#include "discovery/ssh_config.h"
#include "launcher/channels/host_channel.h"
#include "launcher/channels/ssh/ssh_hub.h"
#include "launcher/channels/ssh/ssh_method.h"
#include "runtime/base/clock.h"

namespace hvd {

struct SshRequest {
  SshConfig config;
  std::string
      config_file;      // for the ssh program that connects through jump hosts; "": default files
  std::string command;  // for the remote login shell
  UnknownHostKeys unknown_keys = UnknownHostKeys::kAsConfigured;
  // Limit of each stage. None by default: the observer kills channels that are too slow.
  Duration stage_limit = kNoLimit;

  static constexpr Duration kNoLimit = Duration::max();
};

class SshChannel final : public HostChannel {
 public:
  // The hub outlives the run of its io_context.
  SshChannel(std::shared_ptr<SshHub> hub, SshRequest request);
  ~SshChannel() override;

  void Open(ChannelObserver& observer) override;
  size_t Write(std::string_view bytes) override;
  void Close() override;
  // Closes the connection. The remote command notices by the end of its stdin.
  void Kill() override;

  // After the end: what the ssh program can do that this cannot, as text; "": it would not help.
  const std::string& ssh_might() const;

 private:
  class Connection;
  std::shared_ptr<Connection> connection_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_CHANNEL_H_
