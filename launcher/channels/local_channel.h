// LocalChannel: an agent on this machine, started by exec over a socket pair. If it fails, the
// channel kills the job's remaining processes on this machine. Main thread only.
#ifndef HVD_LAUNCHER_CHANNELS_LOCAL_CHANNEL_H_
#define HVD_LAUNCHER_CHANNELS_LOCAL_CHANNEL_H_

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "launcher/channels/host_channel.h"
#include "launcher/process/byte_pump.h"
#include "launcher/process/local_family.h"

namespace hvd {

// Environment variable of an agent whose kKeptDescriptor is the stdin for rank 0.
inline constexpr const char* kUserStdinVariable = "HVD_USER_STDIN";

class LocalChannel final : public HostChannel {
 public:
  // `command`: the agent's command line; `program`: the file to exec if not its first word.
  // `family` is shared by all local channels of this process. `user_stdin`: for rank 0, if it is on
  // this host (PassesStdin); -1: none; not owned.
  LocalChannel(asio::io_context& io, std::string job_id, std::vector<std::string> command,
               std::shared_ptr<LocalFamily> family = std::make_shared<LocalFamily>(),
               std::string program = {}, int user_stdin = -1);

  void Open(ChannelObserver& observer) override;
  size_t Write(std::string_view bytes) override;
  void Close() override;
  void Kill() override;

 private:
  void WaitForChild();
  void OnStreamEnd();
  void EndIfOver();
  void Finish(std::string reason);
  void KillOurs();
  std::string ExitText(int status) const;

  asio::io_context& io_;
  std::string job_id_;
  std::vector<std::string> command_;
  const std::string program_;
  ChannelObserver* observer_ = nullptr;
  asio::signal_set child_signal_;
  asio::steady_timer limit_;
  std::unique_ptr<BytePump> pump_;
  ChannelStage stage_ = ChannelStage::kExec;
  const int user_stdin_;
  int pid_ = 0;
  std::shared_ptr<LocalFamily> family_;
  bool stream_ended_ = false, reported_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_LOCAL_CHANNEL_H_
