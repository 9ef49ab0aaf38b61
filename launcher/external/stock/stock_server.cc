#include "launcher/external/stock/stock_server.h"

#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Connections of ranks that look each other up, each open briefly.
constexpr int kConnections = 256;
// Enough for a value of some megabytes from a busy host.
constexpr auto kDeadline = std::chrono::seconds(30);

}  // namespace

StockServer::StockServer(asio::io_context& io, uint16_t first_port, uint16_t last_port,
                         uint32_t most_ranks)
    : io_(io),
      first_port_(first_port),
      last_port_(last_port),
      limits_{kMostStockValue, kConnections + static_cast<int>(most_ranks), kDeadline} {}

Result<std::string> StockServer::ListenAt(const std::string& address) {
  std::unique_ptr<HttpServer>& server = servers_[address];
  if (server != nullptr) return server->address();
  auto made = std::make_unique<HttpServer>(
      io_, limits_, [this](const HttpRequest& request, HttpServer::Reply reply) {
        rendezvous_.Handle(request, std::move(reply));
      });
  Status open = Status::Ok();
  for (uint32_t port = first_port_; port <= last_port_; ++port) {
    open = made->Open(address, static_cast<uint16_t>(port));
    if (open.ok()) {
      server = std::move(made);
      return server->address();
    }
  }
  const std::string range =
      first_port_ == 0 ? "any port" : Format("port {} to {}", first_port_, last_port_);
  return Aborted("the rendezvous of stock Horovod cannot listen at " + address + ", " + range +
                 ": " + open.message() + "; --port-range names other ports");
}

std::string StockServer::AddressesText() const {
  std::string text;
  for (const auto& [address, server] : servers_) {
    if (server != nullptr) text += (text.empty() ? "" : " and ") + server->address();
  }
  return text;
}

}  // namespace hvd
