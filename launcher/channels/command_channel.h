// CommandChannel: an agent on another host, through a local program: the ssh binary, or the one of
// --rsh-agent. The program's stdin and stdout are the stream; its stderr explains its end. Main
// thread only.
#ifndef HVD_LAUNCHER_CHANNELS_COMMAND_CHANNEL_H_
#define HVD_LAUNCHER_CHANNELS_COMMAND_CHANNEL_H_

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/channels/host_channel.h"
#include "launcher/process/byte_pump.h"
#include "launcher/process/local_family.h"

namespace hvd {

// How such a program ended, and the tail of its stderr.
struct CommandEnd {
  int wait_status = 0;
  std::string printed;
  bool connected = false;  // bytes of the agent had arrived
  bool killed = false;     // by hvdrun
};
// Interprets the program's end. Pure.
using CommandEndReader = std::function<ChannelEnd(const CommandEnd&)>;
// Called whenever the program writes to stderr, with the tail of its stderr so far.
using CommandOutputReader = std::function<void(const std::string& printed)>;

class CommandChannel final : public HostChannel {
 public:
  // `family` is shared by all channels of this process.
  CommandChannel(asio::io_context& io, std::vector<std::string> command, CommandEndReader read_end,
                 std::shared_ptr<LocalFamily> family, CommandOutputReader read_output = nullptr);

  void Open(ChannelObserver& observer) override;
  size_t Write(std::string_view bytes) override;
  void Close() override;
  void Kill() override;

 private:
  void WaitForChild();
  void OnBytes(std::string_view bytes);
  void OnCommandOutput(std::string_view bytes);
  void OnStreamEnd();
  void EndIfOver();
  void Finish(ChannelEnd end);

  asio::io_context& io_;
  std::vector<std::string> command_;
  CommandEndReader read_end_;
  CommandOutputReader read_output_;  // may be null
  std::shared_ptr<LocalFamily> family_;
  ChannelObserver* observer_ = nullptr;
  asio::signal_set child_signal_;
  asio::steady_timer limit_;
  std::unique_ptr<BytePump> stream_, errors_;
  std::string output_;
  int pid_ = 0;
  bool connected_ = false, closed_ = false, killed_ = false;
  bool stream_ended_ = false, errors_ended_ = false, reported_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_COMMAND_CHANNEL_H_
