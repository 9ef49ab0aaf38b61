// Descriptors that one process hands to another over a unix socket.
#ifndef HVD_LAUNCHER_PROCESS_LINKS_PASS_DESCRIPTORS_H_
#define HVD_LAUNCHER_PROCESS_LINKS_PASS_DESCRIPTORS_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

inline constexpr size_t kMostDescriptors = 4;  // in one message

struct PassedDescriptors {
  std::string bytes;  // empty: the other side has closed
  std::vector<UniqueFd> descriptors;
};

// In one message with at least one byte. The descriptors stay the caller's.
Status PassDescriptors(int socket, const std::string& bytes, const std::vector<int>& descriptors);

// Never waits; nothing when no message is there. A message with more descriptors has none.
std::optional<PassedDescriptors> TakeDescriptors(int socket);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_LINKS_PASS_DESCRIPTORS_H_
