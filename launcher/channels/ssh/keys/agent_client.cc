#include "launcher/channels/ssh/keys/agent_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <optional>

#include "launcher/channels/ssh/keys/agent_messages.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

UniqueFd ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, path.data(), path.size());
  // A full backlog is an immediate error: an agent that does not answer counts as none.
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid() ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  return fd;
}

}  // namespace

AgentClient::AgentClient(asio::io_context& io, const std::string& socket_path,
                         std::function<void()> changed)
    : changed_(std::move(changed)) {
  UniqueFd fd = ConnectTo(socket_path);
  if (!fd.valid()) return;
  UniqueFd also(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  pump_ = std::make_unique<BytePump>(
      io, std::move(fd), std::move(also),
      BytePumpHandlers{[this](std::string_view bytes) { OnBytes(bytes); }, [this] { Flush(); },
                       [this] { Close(); }});
}

void AgentClient::Ask(const std::string& message) {
  answer_ready_ = false;
  out_ += message;
  Flush();
}

void AgentClient::Flush() {
  if (pump_) out_.erase(0, pump_->Write(out_));
}

void AgentClient::OnBytes(std::string_view bytes) {
  in_.append(bytes);
  std::optional<std::string> message = FirstAgentMessage(in_);
  if (!message) return;
  if (message->empty()) return Close();
  in_.clear();  // it sends nothing unasked
  answer_ = std::move(*message);
  answer_ready_ = true;
  changed_();
}

std::string AgentClient::PopAnswer() {
  answer_ready_ = false;
  return std::exchange(answer_, "");
}

void AgentClient::Close() {
  if (!pump_) return;
  pump_->Close();
  ended_pump_ = std::move(pump_);  // we may be in one of its handlers
  changed_();
}

}  // namespace hvd
