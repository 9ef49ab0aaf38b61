#include "launcher/live/metrics_server.h"

#include <utility>

#include "launcher/live/metrics_text.h"
#include "runtime/base/text/format.h"

namespace hvd {

HttpAnswer MetricsAnswer(const HttpRequest& request, const std::function<std::string()>& text) {
  const bool head = request.method == "HEAD";
  if (!head && request.method != "GET") return {.code = kHttpNotAllowed, .methods = "GET, HEAD"};
  if (request.target.substr(0, request.target.find('?')) != "/metrics")
    return {.code = kHttpNotFound, .head_only = head};
  return {.type = kMetricsType, .body = text(), .head_only = head};
}

MetricsServer::MetricsServer(asio::io_context& io, std::function<std::string()> text)
    : server_(io, {.body_bytes = kMostHeadBytes},
              [text = std::move(text)](const HttpRequest& request, const HttpServer::Reply& reply) {
                reply(MetricsAnswer(request, text));
              }) {}

Status MetricsServer::Check(const std::string& address, uint16_t port) {
  asio::io_context io;
  return MetricsServer(io, [] { return std::string(); }).Open(address, port);
}

Status MetricsServer::Open(const std::string& address, uint16_t port) {
  const Status open = server_.Open(address, port);
  if (open.ok()) return open;
  if (open.code() == Code::kInvalidArgument)
    return InvalidArgument("--metrics-bind wants a numeric address, and " + address + " is none");
  return InvalidArgument(
      Format("no metrics can be served at {}, port {}: {}; --metrics-port 0 takes any free port",
             address, port, open.message()));
}

}  // namespace hvd
