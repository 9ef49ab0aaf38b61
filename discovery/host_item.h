// Parses one host or range of a list or line: "bob@[node[01-16]]:2222:8". Pure.
#ifndef HVD_DISCOVERY_HOST_ITEM_H_
#define HVD_DISCOVERY_HOST_ITEM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

inline constexpr uint32_t kMaxSlots = 65'536;
inline constexpr uint16_t kSshPort = 22;  // sshd's default

struct HostItem {
  std::vector<std::string> names;  // at least one
  std::string user;                // "": not given
  uint16_t port = 0;               // 0: not given
  std::optional<uint32_t> slots;
};

// `slots_said`: elsewhere, as in "[::1]:443 slots=2"; then "[host]:4" can only be a port. More than
// `limit` names are refused.
Result<HostItem> ParseHostItem(std::string_view text, bool slots_said, size_t limit);

// Parse the individual parts. `whole` is quoted in the error message.
Result<uint32_t> ParseSlots(std::string_view text, std::string_view whole);
Result<uint16_t> ParsePort(std::string_view text, std::string_view whole);
Status CheckUser(std::string_view user, std::string_view whole);

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_ITEM_H_
