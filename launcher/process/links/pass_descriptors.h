// Passing file descriptors over a unix socket.
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

// Sends one message with at least one byte. The caller keeps its descriptors.
Status PassDescriptors(int socket, const std::string& bytes, const std::vector<int>& descriptors);

// Non-blocking; nothing if there is no message. A message with more than kMostDescriptors yields
// none.
std::optional<PassedDescriptors> ReceiveDescriptors(int socket);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_LINKS_PASS_DESCRIPTORS_H_
