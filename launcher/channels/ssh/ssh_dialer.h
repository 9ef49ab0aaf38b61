// SshDialer: from a host name to a socket connected to its SSH server. Resolves the name, queues at
// the gate of each address and connects, or starts the proxy.
//
// Main thread only.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_DIALER_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_DIALER_H_

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "discovery/ssh_config.h"
#include "launcher/channels/ssh/ssh_hub.h"
#include "launcher/channels/ssh/ssh_program.h"
#include "launcher/channels/ssh/ssh_reasons.h"
#include "launcher/channels/ssh/stage_wait.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

class SshDialer {
 public:
  // `hub` and `config` outlive this object. `config_file`: for the ssh program that connects
  // through jump hosts; "": default files.
  SshDialer(SshHub& hub, const SshConfig& config, std::string config_file,
            std::shared_ptr<StageWait> wait);

  // False: the reason is set. Does nothing if a proxy resolves the name.
  asio::awaitable<bool> Resolve();
  // Invalid: the reason is set, or it was aborted.
  asio::awaitable<UniqueFd> Connect();
  // The login is complete: another one may begin at this address.
  void LeaveGate();
  // The server has too many unauthenticated connections.
  void NoteRefusal() { hub_.NoteRefusal(gate_); }
  // Leaves the gate and ends the proxy.
  void HangUp();

  const SshPlace& place() const { return place_; }
  // The name may resolve later.
  bool may_pass() const { return may_pass_; }
  // As ChannelEnd::no_answer.
  const std::string& no_answer() const { return no_answer_; }
  // The server closed each connection before it said a word.
  void NoteSilence();
  // Stores the proxy's stderr in place(). `over`: the stream has ended; waits briefly for the
  // proxy's explanation.
  asio::awaitable<void> ReceiveProxy(bool over);
  bool proxy_running() const { return proxy_ && proxy_->running(); }

 private:
  asio::awaitable<UniqueFd> ConnectOnce(std::vector<ConnectFailure>* failures);
  asio::awaitable<UniqueFd> ConnectTo(const FoundAddress& address, int* error);
  asio::awaitable<bool> EnterGate(const std::string& address);
  UniqueFd StartProxy();

  SshHub& hub_;
  const SshConfig& config_;
  const std::string config_file_;
  const std::shared_ptr<StageWait> wait_;
  SshPlace place_;
  bool may_pass_ = false;
  std::string no_answer_;
  std::vector<FoundAddress> addresses_;
  std::optional<HandshakeGate::Ticket> ticket_;
  std::string gate_;
  std::shared_ptr<SshProgram> proxy_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_DIALER_H_
