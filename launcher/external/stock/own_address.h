// The addresses at which hosts reach each other, as the routes of this machine say. Asks the
// kernel; sends nothing to other hosts but a question to the name server.
#ifndef HVD_LAUNCHER_EXTERNAL_STOCK_OWN_ADDRESS_H_
#define HVD_LAUNCHER_EXTERNAL_STOCK_OWN_ADDRESS_H_

#include <string>

namespace hvd {

// The numeric IPv4 address from which this machine speaks to that host (a name or an address);
// empty: there is no route to it, or its name is not known. A name server that is slow takes its
// time.
std::string OwnAddressTowards(const std::string& host);

// The same, at once: empty for a name, too.
std::string OwnAddressTowardsNumeric(const std::string& address);

// The interface of this machine that has the numeric address, the one of loopback too; empty: none.
std::string InterfaceWith(const std::string& numeric_address);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_STOCK_OWN_ADDRESS_H_
