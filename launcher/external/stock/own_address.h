// Local addresses by which hosts reach each other, from this machine's routing table. Sends nothing
// over the network except name lookups.
#ifndef HVD_LAUNCHER_EXTERNAL_STOCK_OWN_ADDRESS_H_
#define HVD_LAUNCHER_EXTERNAL_STOCK_OWN_ADDRESS_H_

#include <string>

namespace hvd {

// The numeric IPv4 source address for connections to that host (a name or an address); empty: no
// route, or the name does not resolve. May block on a slow name server.
std::string OwnAddressTowards(const std::string& host);

// The same without name lookup: empty for a name.
std::string OwnAddressTowardsNumeric(const std::string& address);

// The interface with this numeric address, including loopback; empty: none.
std::string InterfaceWith(const std::string& numeric_address);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_STOCK_OWN_ADDRESS_H_
