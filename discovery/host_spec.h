// Host lists as people write them: the text of -H and of a host file. Pure.
#ifndef HVD_DISCOVERY_HOST_SPEC_H_
#define HVD_DISCOVERY_HOST_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

struct HostSpec {
  std::string name;
  std::optional<uint32_t> slots;  // not said: the host's own number

  bool operator==(const HostSpec&) const = default;
};

inline constexpr uint32_t kMaxSlots = 65'536;

// "a:4,b,[::1]:2".
Result<std::vector<HostSpec>> ParseHostList(std::string_view text);

// One host a line: "name", "name:4" or "name slots=4"; other words of the form key=value (max_slots=8) are left alone.
// "#" begins a comment. `file` is for the message.
Result<std::vector<HostSpec>> ParseHostFile(std::string_view text, const std::string& file);

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_SPEC_H_
