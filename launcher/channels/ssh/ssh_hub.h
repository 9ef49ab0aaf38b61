// SshHub: what the ssh channels of one process share: the login gate of each server, name lookups,
// the user's configuration, the known_hosts files, and supervision of the programs that channels
// start (ssh -G, proxies). Main thread only.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_HUB_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_HUB_H_

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/known_hosts.h"
#include "discovery/ssh_config.h"
#include "launcher/channels/ssh/config_answers.h"
#include "launcher/channels/ssh/name_lookup.h"
#include "launcher/process/local_family.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

// Limits concurrent logins at one sshd, which drops unauthenticated connections above MaxStartups
// (10 by default). hvdrun stays below that, and retries if other clients have reached it. Pure; one
// thread.
class HandshakeGate {
 public:
  using Ticket = uint64_t;
  static constexpr size_t kWidth = 8;

  explicit HandshakeGate(size_t width = kWidth) : width_(width) {}

  // True: begin now. False: the ticket waits until a Leave returns it.
  bool Enter(const std::string& address, Ticket ticket);
  // The login is complete or cancelled. Returns the tickets that may begin now.
  std::vector<Ticket> Leave(const std::string& address, Ticket ticket);
  // The server dropped a connection: halves its limit.
  void NoteRefusal(const std::string& address);

 private:
  struct Server {
    size_t most = 0;  // logins at a time
    std::set<Ticket> logging_in;
    std::deque<Ticket> waiting;
  };
  Server& ServerAt(const std::string& address);

  size_t width_;
  std::map<std::string, Server> servers_;
};

// Backoff after refusals by one host: 0.1 s, 0.2 s ... 2 s, each with jitter of up to +-50 %.
class RefusalPatience {
 public:
  explicit RefusalPatience(Duration limit = std::chrono::seconds(25)) : limit_(limit) {}

  // `chance`, 0 to 1: the jitter. Nothing: the limit has passed; give up.
  std::optional<Duration> OnRefusal(TimePoint now, double chance);
  int refusals() const { return refusals_; }

 private:
  Duration limit_;
  std::optional<TimePoint> first_;
  int refusals_ = 0;
};

// The known_hosts files on this machine: read once for all hosts that use the same files, and
// appended to when a new key is accepted. discovery/known_hosts.h parses them. One thread.
class KnownHostsFiles {
 public:
  const KnownHosts& Of(const SshConfig& config);
  // Appends the key to the first of the user's files (0600; creates its folder as 0700).
  Status Accept(const SshConfig& config, std::string_view key);

 private:
  static std::vector<std::string> FilesOf(const SshConfig& config);

  std::map<std::vector<std::string>, KnownHosts> read_;
};

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
