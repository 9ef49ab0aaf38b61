#include "launcher/live/http/http_server.h"

#include <array>
#include <asio/buffer.hpp>
#include <asio/write.hpp>
#include <optional>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using asio::ip::tcp;

constexpr size_t kRoom = size_t{16} * 1024;
// Pause after an error, and while there are too many connections.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

// Kept alive by its own handlers, and by the reply to its request.
class HttpServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::shared_ptr<Shared> shared)
      : socket_(std::move(socket)), timer_(socket_.get_executor()), shared_(std::move(shared)) {
    ++shared_->open;
  }
  ~Connection() { --shared_->open; }
  Connection(const Connection&) = delete;

  void Start() {
    silent_ = shared_->silent.insert(shared_->silent.end(), weak_from_this());
    BeginDeadline();
    Read();
  }
  void Close() {
    NoteHeard();
    answered_ = true;
    asio::error_code ignored;
    (void)socket_.close(ignored);
    timer_.cancel();
  }

 private:
  void BeginDeadline() {
    timer_.expires_after(shared_->limits.deadline);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error) self->Close();
    });
  }

  void Read() {
    socket_.async_read_some(asio::buffer(room_),
                            [self = shared_from_this()](const asio::error_code& error, size_t n) {
                              if (error) return self->Close();
                              self->request_.append(self->room_.data(), n);
                              self->Look();
                            });
  }

  void Look() {
    const HttpRequest request = ParseHttpRequest(request_, shared_->limits.body_bytes);
    if (request.code == 0) return Read();
    NoteHeard();
    if (request.code != kHttpOk) return Answer({.code = request.code});
    if (!shared_->handler) return Close();
    timer_.cancel();  // the handler may take as long as it needs
    shared_->handler(request, [self = shared_from_this()](const HttpAnswer& answer) {
      if (!self->answered_) self->Answer(answer);
    });
    request_ = {};
    if (!answered_) Watch();
  }

  // Watches the client until the answer is ready. Bytes that it sends are discarded.
  void Watch() {
    socket_.async_read_some(asio::buffer(room_),
                            [self = shared_from_this()](const asio::error_code& error, size_t) {
                              if (self->answered_) return;
                              if (error) return self->Close();
                              self->Watch();
                            });
  }

  void Answer(const HttpAnswer& answer) {
    answered_ = true;
    BeginDeadline();
    answer_ = HttpAnswerText(answer);
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](const asio::error_code& error, size_t) {
                        if (error) return self->Close();
                        self->Linger();
                      });
  }

  // Reads bytes that the client may still send, so that closing does not discard the answer.
  void Linger() {
    asio::error_code ignored;
    (void)socket_.shutdown(tcp::socket::shutdown_send, ignored);
    socket_.async_read_some(asio::buffer(room_),
                            [self = shared_from_this()](const asio::error_code& error, size_t) {
                              if (error) return self->Close();
                              self->Linger();
                            });
  }

  void NoteHeard() {
    if (silent_) shared_->silent.erase(*std::exchange(silent_, std::nullopt));
  }

  tcp::socket socket_;
  asio::steady_timer timer_;
  std::shared_ptr<Shared> shared_;
  std::array<char, kRoom> room_{};
  bool answered_ = false;
  std::optional<std::list<std::weak_ptr<Connection>>::iterator> silent_;  // its entry
  std::string request_, answer_;
};

HttpServer::HttpServer(asio::io_context& io, HttpLimits limits, Handler handler)
    : io_(io),
      acceptor_(io),
      pause_(io),
      shared_(std::make_shared<Shared>(Shared{limits, std::move(handler)})) {}

// Connections may outlive the server.
HttpServer::~HttpServer() { shared_->handler = nullptr; }

Status HttpServer::Open(const std::string& address, uint16_t port) {
  asio::error_code error;
  const asio::ip::address ip = asio::ip::make_address(address, error);
  if (error) return InvalidArgument(address + " is no numeric address");
  const tcp::endpoint endpoint(ip, port);
  (void)acceptor_.open(endpoint.protocol(), error);
  if (!error) (void)acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) (void)acceptor_.bind(endpoint, error);
  if (!error) (void)acceptor_.listen(shared_->limits.connections, error);
  if (error) {
    asio::error_code ignored;
    (void)acceptor_.close(ignored);
    return Aborted(error.message());
  }
  Accept();
  return Status::Ok();
}

std::string HttpServer::address() const {
  asio::error_code error;
  const tcp::endpoint endpoint = acceptor_.local_endpoint(error);
  if (error) return "";
  const std::string ip = endpoint.address().to_string();
  return Format("{}:{}", endpoint.address().is_v6() ? "[" + ip + "]" : ip, endpoint.port());
}

// Drops a silent connection: strangers may open connections without sending anything.
bool HttpServer::MakeRoom() {
  if (shared_->open < shared_->limits.connections) return true;
  if (shared_->silent.empty()) return false;
  if (const std::shared_ptr<Connection> oldest = shared_->silent.front().lock()) oldest->Close();
  return true;
}

void HttpServer::Accept() {
  if (shared_->open >= shared_->limits.connections && shared_->silent.empty()) {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const asio::error_code& error) {
      if (!error) Accept();
    });
    return;
  }
  acceptor_.async_accept([this](const asio::error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error && MakeRoom()) std::make_shared<Connection>(std::move(socket), shared_)->Start();
    pause_.expires_after(error ? kAcceptPause : std::chrono::milliseconds(0));
    pause_.async_wait([this](const asio::error_code& ended) {
      if (!ended) Accept();
    });
  });
}

}  // namespace hvd
