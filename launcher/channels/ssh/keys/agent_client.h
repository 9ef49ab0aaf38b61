// AgentClient: asynchronous client of the user's ssh-agent, which may prompt its user first. One
// thread.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_KEYS_AGENT_CLIENT_H_
#define HVD_LAUNCHER_CHANNELS_SSH_KEYS_AGENT_CLIENT_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "launcher/process/byte_pump.h"

namespace hvd {

class AgentClient {
 public:
  // `changed` is called from the io_context when an answer has arrived or the agent is gone.
  AgentClient(asio::io_context& io, const std::string& socket_path, std::function<void()> changed);

  bool gone() const { return !pump_; }
  // One question at a time; `message` as in agent_messages.h.
  void Ask(const std::string& message);
  bool answered() const { return gone() || answer_ready_; }
  // After answered(): the message; "" if the agent is gone.
  std::string PopAnswer();
  void Close();

 private:
  void Flush();
  void OnBytes(std::string_view bytes);

  std::function<void()> changed_;
  std::unique_ptr<BytePump> pump_, ended_pump_;
  std::string out_, in_, answer_;
  bool answer_ready_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_KEYS_AGENT_CLIENT_H_
