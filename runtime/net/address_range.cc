#include "runtime/net/address_range.h"

#include <arpa/inet.h>

#include <algorithm>

#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr size_t kBitsPerByte = 8;

// 4 or 16 bytes; "" if it is not an address.
std::string BytesOf(const std::string& numeric) {
  std::string bytes(sizeof(in6_addr), '\0');
  if (::inet_pton(AF_INET6, numeric.c_str(), bytes.data()) == 1) return bytes;
  bytes.resize(sizeof(in_addr));
  return ::inet_pton(AF_INET, numeric.c_str(), bytes.data()) == 1 ? bytes : "";
}

}  // namespace

Result<AddressRange> ParseAddressRange(std::string_view text) {
  const size_t slash = std::min(text.find('/'), text.size());
  AddressRange range{BytesOf(std::string(text.substr(0, slash)))};
  const auto bits = ParseWhole<decltype(range.bits)>(text.substr(std::min(slash + 1, text.size())));
  if (range.network.empty() || !bits || *bits > range.network.size() * kBitsPerByte) {
    return InvalidArgument("'" + std::string(text) +
                           "' is no range of addresses; try one like 10.1.0.0/16");
  }
  range.bits = *bits;
  return range;
}

bool Holds(const AddressRange& range, const std::string& numeric) {
  const std::string address = BytesOf(numeric);
  if (address.size() != range.network.size()) return false;
  for (size_t bit = 0; bit < range.bits; bit += kBitsPerByte) {
    const size_t counted = std::min<size_t>(kBitsPerByte, range.bits - bit);
    const auto shift = static_cast<unsigned>(kBitsPerByte - counted);
    const auto differ =
        static_cast<unsigned char>(address[bit / kBitsPerByte] ^ range.network[bit / kBitsPerByte]);
    if (differ >> shift != 0) return false;
  }
  return true;
}

}  // namespace hvd
