// HttpServer: one request on each connection, within limits. The bytes that strangers send cost so
// much memory and time and no more.
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
  // At a time. For another one the oldest goes whose request has not come; where all have come,
  // others wait until one is closed.
  int connections = 32;
  // For the request to come, and for its answer to be taken.
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
};

class HttpServer {
 public:
  // Sends the answer; may be called later, or never. A client that goes away is not told.
  using Reply = std::function<void(HttpAnswer)>;
  // One whole request that is well formed; its texts live as long as the call. Runs from the
  // io_context.
  using Handler = std::function<void(const HttpRequest&, Reply)>;

  HttpServer(asio::io_context& io, HttpLimits limits, Handler handler);
  // Requests that are not answered yet never will be.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;

  // `address`: numeric. Port 0: any free one. kInvalidArgument: the address is not numeric.
  // kAborted: the system's sentence.
  Status Open(const std::string& address, uint16_t port);
  // "127.0.0.1:9400"; "" before Open.
  std::string address() const;

 private:
  class Connection;
  struct Shared {
    HttpLimits limits;
    Handler handler;
    int open = 0;                                 // connections
    std::list<std::weak_ptr<Connection>> silent;  // no whole request has come; the oldest first
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
