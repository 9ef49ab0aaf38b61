// HttpServer: one request per connection, with bounded memory and time for untrusted clients.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_LIVE_HTTP_HTTP_SERVER_H_
#define HVD_LAUNCHER_LIVE_HTTP_HTTP_SERVER_H_

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "launcher/live/http/http_request.h"
#include "runtime/base/status.h"

namespace hvd {

struct HttpLimits {
  size_t body_bytes = 0;  // of a request
  // Maximum number of open connections. A new one replaces the oldest without a complete request;
  // if all have one, it waits until a connection is closed.
  int connections = 32;
  // For receiving the request, and for sending the answer.
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
};

class HttpServer {
 public:
  // Sends the answer; may be called later, or never. No error if the client has gone.
  using Reply = std::function<void(HttpAnswer)>;
  // Gets a complete, well-formed request; its texts are valid during the call. Runs on the
  // io_context.
  using Handler = std::function<void(const HttpRequest&, Reply)>;

  HttpServer(asio::io_context& io, HttpLimits limits, Handler handler);
  // Drops unanswered requests.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;

  // `address`: numeric. Port 0: any free one. kInvalidArgument: the address is not numeric.
  // kAborted: the system's error message.
  Status Open(const std::string& address, uint16_t port);
  // "127.0.0.1:9400"; "" before Open.
  std::string address() const;

 private:
  class Connection;
  struct Shared {
    HttpLimits limits;
    Handler handler;
    int open = 0;                                 // connections
    std::list<std::weak_ptr<Connection>> silent;  // without a complete request; oldest first
  };
  void Accept();
  bool MakeRoom();

  asio::io_context& io_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_HTTP_HTTP_SERVER_H_
