#include "launcher/overlay/relay/relay_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <utility>

namespace hvd {
namespace {

constexpr int kPiecesAtOnce = 8;  // then others have their turn

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
    auto on_bytes = handlers_.on_bytes;  // stays while it is called
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

}  // namespace hvd
