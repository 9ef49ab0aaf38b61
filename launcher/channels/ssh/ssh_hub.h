// SshHub: what the ssh channels of one process share: the login gate of each server, name lookups,
// the user's configuration, the known_hosts files, and supervision of the programs that channels
// start (ssh -G, proxies). Main thread only.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_HUB_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_HUB_H_

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "launcher/channels/ssh/config_answers.h"
#include "launcher/channels/ssh/handshake_gate.h"
#include "launcher/channels/ssh/known_hosts_files.h"
#include "launcher/channels/ssh/name_lookup.h"
#include "launcher/process/local_family.h"

namespace hvd {

class SshHub : public std::enable_shared_from_this<SshHub> {
 public:
  // `family` is shared with the local channels, so that neither reaps or kills a child of the
  // other.
  explicit SshHub(asio::io_context& io,
                  std::shared_ptr<LocalFamily> family = std::make_shared<LocalFamily>());

  asio::io_context& io() { return io_; }
  NameLookup& names() { return names_; }
  KnownHostsFiles& known_hosts() { return known_hosts_; }
  ConfigAnswers& config_answers() { return config_answers_; }

  // `on_turn` is called when a login at this address may begin: at once, or later.
  HandshakeGate::Ticket EnterGate(const std::string& address, std::function<void()> on_turn);
  void LeaveGate(const std::string& address, HandshakeGate::Ticket ticket);
  void NoteRefusal(const std::string& address) { gate_.NoteRefusal(address); }
  // Shows each distinct warning once; ignores "".
  void WarnOnce(const std::string& sentence);
  // Uniform in 0 to 1.
  double Chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  // `on_exit` is called once, later, with the wait status.
  void WatchChild(pid_t pid, std::function<void(int status)> on_exit);
  // Kills its process group, if it has not ended; on_exit is still called.
  void KillChild(pid_t pid);

 private:
  void WaitForChildren();
  void ReportExits();

  asio::io_context& io_;
  std::shared_ptr<LocalFamily> family_;
  NameLookup names_;
  KnownHostsFiles known_hosts_;
  ConfigAnswers config_answers_;
  HandshakeGate gate_;
  HandshakeGate::Ticket next_ticket_ = 1;
  std::map<HandshakeGate::Ticket, std::function<void()>> in_line_;
  std::mt19937_64 random_{std::random_device{}()};
  asio::signal_set child_signal_;
  bool waiting_ = false;
  std::set<std::string> warned_;
  std::map<pid_t, std::function<void(int)>> children_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_HUB_H_
