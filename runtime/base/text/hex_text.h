// Bytes and numbers as hexadecimal digits, in lower case. Pure.
#ifndef HVD_RUNTIME_BASE_TEXT_HEX_TEXT_H_
#define HVD_RUNTIME_BASE_TEXT_HEX_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

// Two digits for each byte.
inline std::string HexOf(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) text += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  return text;
}

// Sixteen digits.
inline std::string HexOf(uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return HexOf(std::string_view(bytes));
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_TEXT_HEX_TEXT_H_
