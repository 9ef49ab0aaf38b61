// AddressRange: a network as CIDR writes it, "10.1.0.0/16" or "fd00::/8". Pure.
#ifndef HVD_RUNTIME_NET_ADDRESS_RANGE_H_
#define HVD_RUNTIME_NET_ADDRESS_RANGE_H_

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace hvd {

struct AddressRange {
  std::string network;  // the bytes of an address, 4 or 16
  unsigned bits = 0;    // length of the prefix
};

// Whether the text is meant as a range: it has a "/", which no interface name has.
inline bool LooksLikeRange(std::string_view text) { return text.find('/') != text.npos; }

// kInvalidArgument: no numeric address before the "/", or no valid number of bits after it.
Result<AddressRange> ParseAddressRange(std::string_view text);

// `numeric`: an address without a port and a zone; false for anything else.
bool Holds(const AddressRange& range, const std::string& numeric);

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_ADDRESS_RANGE_H_
