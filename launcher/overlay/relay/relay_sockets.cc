#include "launcher/overlay/relay/relay_sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <deque>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr int kPiecesAtOnce = 8;  // then others get a turn

}  // namespace

RelaySocket::RelaySocket(asio::io_context& io, UniqueFd socket, Handlers handlers)
    : socket_(io, socket.Release()), handlers_(std::move(handlers)) {
  socket_.native_non_blocking(true);
  int on = 1;
  ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void RelaySocket::Start() { WaitToRead(); }

void RelaySocket::Allow(uint64_t bytes) {
  credit_ += bytes;
  WaitToRead();
}

void RelaySocket::WaitToRead() {
  if (reading_ || credit_ == 0 || !handlers_.on_bytes) return;
  reading_ = true;
  socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this()](const asio::error_code& error) {
                       self->reading_ = false;
                       if (!error && self->handlers_.on_bytes) self->Read();
                     });
}

void RelaySocket::Read() {
  std::string bytes;
  for (int piece = 0; piece < kPiecesAtOnce && credit_ > 0; ++piece) {
    bytes.resize(std::min<uint64_t>(credit_, kRelayPiece));
    ssize_t got = ::recv(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got <= 0) return End();
    const bool drained = static_cast<size_t>(got) < bytes.size();
    bytes.resize(static_cast<size_t>(got));
    credit_ -= bytes.size();
    auto on_bytes = handlers_.on_bytes;  // must survive its own call
    on_bytes(std::move(bytes));
    if (!handlers_.on_bytes) return;
    if (drained) break;
    bytes.clear();
  }
  WaitToRead();
}

bool RelaySocket::Write(std::string_view bytes) {
  if (!socket_.is_open()) return true;
  if (unwritten_.size() - written_ + bytes.size() > kRelayWindow) return false;
  unwritten_.append(bytes);
  if (!waiting_to_write_) {  // from the io_context, because handlers are called
    waiting_to_write_ = true;
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->TryToWrite(); });
  }
  return true;
}

void RelaySocket::TryToWrite() {
  waiting_to_write_ = false;
  if (!socket_.is_open()) return;
  size_t total = 0;
  while (written_ < unwritten_.size()) {
    ssize_t sent = ::send(socket_.native_handle(), unwritten_.data() + written_,
                          unwritten_.size() - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) return End();
    written_ += static_cast<size_t>(sent);
    total += static_cast<size_t>(sent);
  }
  if (written_ == unwritten_.size() || written_ >= kRelayWindow / 2) {
    unwritten_.erase(0, written_);
    written_ = 0;
  }
  if (!unwritten_.empty()) {
    waiting_to_write_ = true;
    socket_.async_wait(asio::posix::stream_descriptor::wait_write,
                       [self = shared_from_this()](const asio::error_code& error) {
                         if (!error) self->TryToWrite();
                       });
  } else if (finishing_) {
    return Close();
  }
  if (total > 0 && handlers_.on_written) handlers_.on_written(total);
}

void RelaySocket::Finish() {
  handlers_ = {};
  finishing_ = true;
  if (unwritten_.empty()) Close();
}

void RelaySocket::End() {
  auto on_end = std::move(handlers_.on_end);
  Close();
  if (on_end) on_end();
}

void RelaySocket::Close() {
  handlers_ = {};
  asio::error_code ignored;
  socket_.close(ignored);
}

namespace {

using asio::posix::stream_descriptor;

constexpr size_t kMostGuests = 64;  // the oldest goes first
constexpr auto kHelloLimit = std::chrono::seconds(10);
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr int kBacklog = 64;

// A connection that has not sent its hello yet.
struct Guest {
  Guest(asio::io_context& io, UniqueFd fd, const MeshIdentity& expected)
      : socket(io, fd.Release()), limit(io), check(expected) {}

  void Close() {
    asio::error_code ignored;
    socket.close(ignored);
    limit.cancel();
  }

  stream_descriptor socket;
  asio::steady_timer limit;
  MeshResponder check;
  std::string hello;
};

}  // namespace

class RelayPort::Guests : public std::enable_shared_from_this<Guests> {
 public:
  Guests(asio::io_context& io, UniqueFd listener, MeshIdentity expected, OnConnection on_connection)
      : io_(io),
        listener_(io, listener.Release()),
        pause_(io),
        expected_(std::move(expected)),
        on_connection_(std::move(on_connection)) {}

  void WaitToAccept() {
    listener_.async_wait(stream_descriptor::wait_read,
                         [self = shared_from_this()](const asio::error_code& error) {
                           if (!error && self->listener_.is_open()) self->Accept();
                         });
  }

  void Close() {
    on_connection_ = nullptr;
    asio::error_code ignored;
    listener_.close(ignored);
    pause_.cancel();
    for (auto& guest : guests_) guest->Close();
    guests_.clear();
  }

  uint16_t port() {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    return ::getsockname(listener_.native_handle(), generic, &length) == 0 ? ntohs(address.sin_port)
                                                                           : uint16_t{0};
  }

 private:
  void Accept() {
    UniqueFd socket(
        ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid() && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      return Pause();
    if (socket.valid()) {
      if (guests_.size() >= kMostGuests) Drop(guests_.front());
      auto guest = std::make_shared<Guest>(io_, std::move(socket), expected_);
      guests_.push_back(guest);
      guest->limit.expires_after(kHelloLimit);
      guest->limit.async_wait([self = shared_from_this(), guest](const asio::error_code& error) {
        if (!error) self->Drop(guest);
      });
      WaitForHello(guest);
    }
    WaitToAccept();
  }

  // Most likely out of descriptors.
  void Pause() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error && self->listener_.is_open()) self->WaitToAccept();
    });
  }

  void WaitForHello(const std::shared_ptr<Guest>& guest) {
    guest->socket.async_wait(stream_descriptor::wait_read,
                             [self = shared_from_this(), guest](const asio::error_code& error) {
                               if (!error && guest->socket.is_open()) self->ReadHello(guest);
                             });
  }

  // Reads nothing beyond the hello: the relay reads the rest.
  void ReadHello(const std::shared_ptr<Guest>& guest) {
    std::array<char, 256> bytes;
    ssize_t got = ::recv(guest->socket.native_handle(), bytes.data(),
                         std::min(bytes.size(), guest->check.Wanted()), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return WaitForHello(guest);
    if (got <= 0) return Drop(guest);
    guest->hello.append(bytes.data(), static_cast<size_t>(got));
    Result<std::string> answer = guest->check.Receive({bytes.data(), static_cast<size_t>(got)});
    if (!answer.ok()) return Drop(guest);
    if (answer->empty()) return WaitForHello(guest);
    // The rank itself answers the hello.
    UniqueFd socket(guest->socket.release());
    std::string hello = std::move(guest->hello);
    Drop(guest);
    if (on_connection_) on_connection_(std::move(socket), std::move(hello));
  }

  void Drop(std::shared_ptr<Guest> guest) {
    guest->Close();
    std::erase(guests_, guest);
  }

  asio::io_context& io_;
  stream_descriptor listener_;
  asio::steady_timer pause_;
  const MeshIdentity expected_;
  OnConnection on_connection_;
  std::deque<std::shared_ptr<Guest>> guests_;
};

Result<std::unique_ptr<RelayPort>> RelayPort::Open(asio::io_context& io, MeshIdentity expected,
                                                   OnConnection on_connection) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return SystemError("no port on 127.0.0.1 could be opened for relayed connections", errno);
  }
  auto guests = std::make_shared<Guests>(io, std::move(socket), std::move(expected),
                                         std::move(on_connection));
  guests->WaitToAccept();
  return std::unique_ptr<RelayPort>(new RelayPort(std::move(guests)));
}

RelayPort::~RelayPort() { guests_->Close(); }

std::string RelayPort::endpoint() const { return Format("127.0.0.1:{}", guests_->port()); }

}  // namespace hvd
