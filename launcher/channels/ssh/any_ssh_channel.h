// AnySshChannel: an agent on another host over SSH: reads the user's ssh configuration, then uses
// libssh2 in this process, or the ssh program where only that can do it or may succeed after
// libssh2 has failed. Main thread only.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_ANY_SSH_CHANNEL_H_
#define HVD_LAUNCHER_CHANNELS_SSH_ANY_SSH_CHANNEL_H_

#include <functional>
#include <memory>
#include <string>

#include "launcher/channels/host_channel.h"
#include "launcher/channels/ssh/ssh_channel.h"
#include "launcher/channels/ssh/ssh_hub.h"
#include "launcher/channels/ssh/ssh_program.h"

namespace hvd {

// Creates the channel that runs the ssh program; `why` it is needed, for --verbose.
using MakeSshProgramChannel =
    std::function<std::unique_ptr<HostChannel>(const SshHost& host, const std::string& why)>;

class AnySshChannel final : public HostChannel {
 public:
  AnySshChannel(std::shared_ptr<SshHub> hub, SshHost host, std::string command,
                UnknownHostKeys unknown_keys, MakeSshProgramChannel make_program_channel);
  ~AnySshChannel() override;

  void Open(ChannelObserver& observer) override;
  size_t Write(std::string_view bytes) override;
  void Close() override;
  void Kill() override;

 private:
  class Choice;
  std::shared_ptr<Choice> choice_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_ANY_SSH_CHANNEL_H_
