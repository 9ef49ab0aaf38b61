// MetricsServer: answers GET /metrics, for Prometheus, and nothing else.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_LIVE_METRICS_SERVER_H_
#define HVD_LAUNCHER_LIVE_METRICS_SERVER_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "launcher/live/http/http_server.h"
#include "runtime/base/status.h"

namespace hvd {

// The answer to a request; `text` returns the current metrics.
HttpAnswer MetricsAnswer(const HttpRequest& request, const std::function<std::string()>& text);

class MetricsServer {
 public:
  // `text` returns the current metrics.
  MetricsServer(asio::io_context& io, std::function<std::string()> text);

  // Whether Open would succeed.
  static Status Check(const std::string& address, uint16_t port);
  // `address`: numeric. Port 0: any free one. Not ok: a sentence about address and port.
  Status Open(const std::string& address, uint16_t port);
  // "127.0.0.1:9400"
  std::string address() const { return server_.address(); }

 private:
  HttpServer server_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_METRICS_SERVER_H_
