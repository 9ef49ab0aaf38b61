#include "launcher/channels/nodes/follow.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/channels/nodes/node_order.h"
#include "launcher/overlay/dial/connector_loop.h"
#include "launcher/overlay/dial/sealed_pump.h"
#include "launcher/process/spawn.h"
#include "runtime/base/env.h"
#include "runtime/base/text/format.h"
#include "runtime/net/sealed_records.h"

namespace hvd {
namespace {

constexpr Duration kDialLimit = std::chrono::seconds(5);
constexpr Duration kFirstPause = std::chrono::milliseconds(200);
constexpr Duration kLongestPause = std::chrono::seconds(5);
constexpr Duration kFirstProgress = std::chrono::seconds(5);
constexpr Duration kProgress = std::chrono::seconds(30);
// From the end of a connection to the SIGKILL of its command: the agent ends its workers first.
constexpr Duration kEndLimit = std::chrono::seconds(10);
constexpr size_t kMostAtOnce = 64 * 1024;

// A connection to node 0: waits for an order, then carries the stream of its command.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  // Called once with the order; nothing: the connection is of no further use.
  using OnOrder = std::function<void(const std::optional<NodeOrder>& order)>;

  Connection(asio::io_context& io, SealedLine line, OnOrder on_order)
      : socket_(io, line.socket.Release()),
        child_(io),
        limit_(io),
        sealer_(line.seals_with),
        opener_(line.opens_with),
        on_order_(std::move(on_order)) {}

  void Start() { ReadSocket(); }
  pid_t pid() const { return pid_; }
  bool running() const { return pid_ != 0; }
  void Close() {
    socket_.close();
    child_.close();
  }
  // Its program was reaped.
  void NoteEnd() {
    pid_ = 0;
    limit_.cancel();
  }
  // Not ok: one sentence.
  std::string Run(const std::string& command) {
    int pair[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return std::string("no socket could be made: ") + std::strerror(errno);
    UniqueFd ours(pair[0]), theirs(pair[1]);
    std::vector<std::string> environment;
    for (const auto& [name, value] : AllEnv()) environment.push_back(name + "=" + value);
    // The command ends with its stream, as under sshd: an agent must end its ranks first.
    const SpawnOutcome child =
        SpawnProgram({{"/bin/sh", "-c", command}, environment, "/"},
                     {theirs.get(), theirs.get(), STDERR_FILENO, /*dies_with_us=*/false});
    if (child.pid == 0) return child.reason;
    pid_ = child.pid;
    child_.assign(ours.Release());
    ReadChild();
    return "";
  }

 private:
  void ReadSocket() {
    socket_.async_read_some(
        asio::buffer(from_socket_),
        [self = shared_from_this()](const asio::error_code& error, size_t count) {
          if (error) return self->EndOfSocket();
          std::string plain;
          const bool genuine =
              self->opener_.Open(std::string_view(self->from_socket_.data(), count), plain).ok();
          if (!genuine) return self->EndOfSocket();
          self->Handle(std::move(plain));
        });
  }
  void Handle(std::string plain) {
    if (on_order_) {
      if (!order_.Add(plain)) return ReadSocket();
      std::exchange(on_order_, nullptr)(order_.order());
      if (!running()) return;
      plain = order_.rest();
    }
    if (plain.empty() || !child_.is_open()) return ReadSocket();
    to_child_ = std::move(plain);
    asio::async_write(child_, asio::buffer(to_child_),
                      [self = shared_from_this()](const asio::error_code&, size_t) {
                        self->ReadSocket();  // input not read by then is lost
                      });
  }
  void EndOfSocket() {
    if (on_order_) return std::exchange(on_order_, nullptr)(std::nullopt);
    if (child_.is_open()) ::shutdown(child_.native_handle(), SHUT_WR);
    if (!running()) return;
    limit_.expires_after(kEndLimit);
    limit_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error && self->running()) ::kill(-self->pid_, SIGKILL);
    });
  }
  void ReadChild() {
    child_.async_read_some(
        asio::buffer(from_child_),
        [self = shared_from_this()](const asio::error_code& error, size_t count) {
          std::string sealed;
          const std::string_view plain(self->from_child_.data(), count);
          if (error || !self->sealer_.Seal(plain, sealed).ok()) return self->EndOfChild();
          self->to_socket_ = std::move(sealed);
          asio::async_write(self->socket_, asio::buffer(self->to_socket_),
                            [self](const asio::error_code& failed, size_t) {
                              failed ? self->EndOfChild() : self->ReadChild();
                            });
        });
  }
  void EndOfChild() {
    if (child_.is_open()) child_.close();
    if (socket_.is_open()) ::shutdown(socket_.native_handle(), SHUT_RDWR);
  }

  asio::posix::stream_descriptor socket_, child_;
  asio::steady_timer limit_;
  RecordSealer sealer_;
  RecordOpener opener_;
  OrderReader order_;
  OnOrder on_order_;
  pid_t pid_ = 0;
  std::array<char, kMostAtOnce> from_socket_, from_child_;
  std::string to_child_, to_socket_;
};

class Follower final : private MeshConnectorOwner {
 public:
  explicit Follower(FollowOptions options)
      : options_(std::move(options)),
        signals_(io_, SIGTERM, SIGINT, SIGCHLD),
        timer_(io_),
        resolver_(io_),
        loop_(io_, clock_, ConnectorOptions(), MeshListener(),
              static_cast<MeshConnectorOwner&>(*this)) {}

  std::optional<int> Run() {
    last_contact_ = clock_.Now();
    next_progress_ = last_contact_ + kFirstProgress;
    WaitForSignal();
    Dial();
    io_.run();
    loop_.Close();
    return code_;
  }

 private:
  MeshConnectorOptions ConnectorOptions() const {
    MeshConnectorOptions options;
    options.identity = {options_.key, kNodeGeneration, options_.node};
    options.connect_timeout = options.handshake_timeout = kDialLimit;
    options.name = [](uint32_t) { return std::string("node 0"); };
    options.session_keys = true;
    return options;
  }
  std::string Leader() const { return Format("{}, port {}", options_.leader, options_.port); }

  // ---- the connection that waits

  void Dial() {
    if (over_) return;
    resolver_.async_resolve(
        options_.leader, std::to_string(options_.port),
        [this](const asio::error_code& error, const asio::ip::tcp::resolver::results_type& found) {
          if (over_) return;
          if (options_.leads && !met_ && options_.leads()) return End(std::nullopt);
          if (error) return Again("its name has no address yet (" + error.message() + ")");
          std::vector<MeshAddress> addresses;
          for (const auto& entry : found) {
            const auto endpoint = entry.endpoint();
            MeshAddress address;
            address.length = static_cast<socklen_t>(endpoint.size());
            std::memcpy(&address.storage, endpoint.data(), endpoint.size());
            addresses.push_back(address);
          }
          loop_.Dial(0, std::move(addresses));
        });
  }
  void Again(const std::string& why) {
    if (over_) return;
    const TimePoint now = clock_.Now();
    if (Busy()) last_contact_ = now;
    const int64_t waited =
        std::chrono::duration_cast<std::chrono::seconds>(now - last_contact_).count();
    if (now - last_contact_ >= options_.patience) {
      options_.say(
          Format("{} has not reached node 0 at {} for {} s, because {}; does the same "
                 "command run there, with the same key{}?",
                 options_.name, Leader(), waited, why,
                 options_.leads ? ", and is this an address of that machine itself (else give it "
                                  "--node-rank 0, and the others the next ones)"
                                : ""));
      return End(1);
    }
    if (now >= next_progress_ && !Busy()) {
      options_.say(Format("{} waits for node 0 at {}, for {} s so far: {}", options_.name, Leader(),
                          waited, why));
      next_progress_ = now + kProgress;
    }
    timer_.expires_after(pause_);
    pause_ = std::min(2 * pause_, kLongestPause);
    timer_.async_wait([this](const asio::error_code& error) {
      if (!error) Dial();
    });
  }
  void Unreachable(uint32_t, Status why) override { Again(why.message()); }
  void Connected(uint32_t, UniqueFd socket, const MeshGreeting& greeting) override {
    if (over_) return;
    met_ = true;
    last_contact_ = clock_.Now();
    pause_ = kFirstPause;
    KeepAlive(socket.get());
    auto connection = std::make_shared<Connection>(
        io_, LineOf(std::move(socket), greeting.keys, greeting.incoming),
        [this](const std::optional<NodeOrder>& order) { Handle(order); });
    waiting_ = connection;
    connection->Start();
  }
  // Detects that node 0's host is gone.
  static void KeepAlive(int socket) {
    const int on = 1, idle = 15, interval = 5, count = 3;
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  }
  void Handle(const std::optional<NodeOrder>& order) {
    const std::shared_ptr<Connection> connection = std::exchange(waiting_, nullptr);
    if (over_) return;
    if (!order) {
      connection->Close();
      return Again("its connection was closed");
    }
    if (!order->command) return End(order->code);
    if (const std::string why = connection->Run(*order->command); !why.empty()) {
      options_.say(Format("{}: {}", options_.name, why));
      connection->Close();
    } else {
      running_.push_back(connection);
    }
    Dial();  // for the next order
  }

  // ---- the commands

  bool Busy() const { return !running_.empty(); }
  void WaitForSignal() {
    signals_.async_wait([this](const asio::error_code& error, int signal) {
      if (error) return;
      signal == SIGCHLD ? Reap() : Stop(signal);
      WaitForSignal();
    });
  }
  // Reaps its children and adopted orphans.
  void Reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      for (const auto& connection : running_) {
        if (connection->pid() == pid) connection->NoteEnd();
      }
    }
    std::erase_if(running_, [](const auto& connection) { return !connection->running(); });
    if (running_.empty()) last_contact_ = clock_.Now();
    if (over_ && running_.empty()) io_.stop();
  }
  // SIGTERM to an agent of an elastic job makes its ranks leave after their step.
  void Stop(int signal) {
    for (const auto& connection : running_) ::kill(-connection->pid(), signal);
    const bool again = over_;
    End(128 + signal);
    if (again) io_.stop();
  }
  // Ends with this code once the commands are over.
  void End(std::optional<int> code) {
    code_ = code;
    over_ = true;
    resolver_.cancel();
    timer_.cancel();
    if (waiting_) std::exchange(waiting_, nullptr)->Close();
    if (running_.empty()) io_.stop();
  }

  const FollowOptions options_;
  const SteadyClock clock_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer timer_;
  asio::ip::tcp::resolver resolver_;
  ConnectorLoop loop_;
  std::shared_ptr<Connection> waiting_;
  std::list<std::shared_ptr<Connection>> running_;
  TimePoint last_contact_, next_progress_;
  Duration pause_ = kFirstPause;
  bool over_ = false, met_ = false;
  std::optional<int> code_ = 1;
};

}  // namespace

std::optional<int> FollowNode(FollowOptions options) {
  ::signal(SIGPIPE, SIG_IGN);  // a write to a connection or a program that has ended is an error
  return Follower(std::move(options)).Run();
}

}  // namespace hvd
