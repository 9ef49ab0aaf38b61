// Hashing bytes. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_PACKING_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_PACKING_H_

#include <string>
#include <string_view>

namespace hvd {

// SHA-256 in 64 hexadecimal digits, as sha256sum prints it.
std::string Sha256Hex(std::string_view bytes);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_PACKING_H_
