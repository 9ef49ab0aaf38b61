// StockServer: serves a StockRendezvous at the addresses of this machine that workers need.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_SERVER_H_
#define HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_SERVER_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/external/stock/stock_rendezvous.h"
#include "launcher/live/http/http_server.h"
#include "runtime/base/status.h"

namespace hvd {

class StockServer {
 public:
  // `first_port`, `last_port`: range to listen in; both 0: any free port. `most_ranks`: maximum
  // number of ranks that wait for their place.
  StockServer(asio::io_context& io, uint16_t first_port, uint16_t last_port, uint32_t most_ranks);

  // Listens at this numeric address, unless it does already. Returns "10.0.0.1:4711". Not ok: a
  // sentence.
  Result<std::string> ListenAt(const std::string& address);
  // "10.0.0.1:4711", "10.0.0.1:4711 and 127.0.0.1:4712"
  std::string AddressesText() const;

  StockRendezvous& rendezvous() { return rendezvous_; }

 private:
  asio::io_context& io_;
  const uint16_t first_port_, last_port_;
  const HttpLimits limits_;
  StockRendezvous rendezvous_;
  std::map<std::string, std::unique_ptr<HttpServer>> servers_;  // by address
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_STOCK_STOCK_SERVER_H_
