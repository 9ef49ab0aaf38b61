// StockWorlds: runs the rendezvous (stock/) of workers of stock Horovod and publishes the places of
// each of their worlds in it.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_STOCK_WORLDS_H_
#define HVD_LAUNCHER_DRIVER_STOCK_WORLDS_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/driver/driver_options.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/elastic_hosts/off_loop.h"
#include "launcher/external/stock/own_address.h"
#include "launcher/external/stock/stock_server.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"

namespace hvd {

class StockWorlds {
 public:
  // The address from which this machine reaches a host; empty: not known. May block.
  using AskAddress = std::function<std::string(const std::string& host)>;

  // All of them outlive this object. `plan` has the names of all hosts that have a place, and
  // `hosts` knows them.
  StockWorlds(asio::io_context& io, const DriverOptions& options, const Plan& plan,
              const JobHosts& hosts, AskAddress ask = OwnAddressTowards);

  // Before a host gets a place. `then` is called when Begin() has no more to ask about it: at once,
  // or by the io_context.
  void Learn(uint32_t host, std::function<void()> then);
  // The workers at these places are about to start. Not ok: a sentence.
  Status Begin(const std::vector<Placement>& places);
  // One of them failed.
  void Break() { server_.rendezvous().Break(); }
  // The address of the rendezvous for the workers of a host that has a place: "10.0.0.1:4711".
  std::string AddressFor(uint32_t host) const;
  // A notice for the user, once; then empty.
  std::string PopNotice();

 private:
  Result<std::string> OwnAddress(const std::vector<Placement>& places, uint32_t host);
  std::string TargetOn(uint32_t host) const;

  asio::io_context& io_;
  const DriverOptions& options_;
  const Plan& plan_;
  const JobHosts& hosts_;
  const AskAddress ask_;
  StockServer server_;
  std::map<std::string, std::string> own_;     // the address of this machine, by a host's name
  std::map<uint32_t, OffLoop> questions_;      // by host
  std::map<uint32_t, std::string> addresses_;  // by host
  bool notice_popped_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_STOCK_WORLDS_H_
