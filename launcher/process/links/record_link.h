// A record that one process keeps updated in another over a socket: the last complete one counts,
// even if the writer is killed while writing the next.
#ifndef HVD_LAUNCHER_PROCESS_LINKS_RECORD_LINK_H_
#define HVD_LAUNCHER_PROCESS_LINKS_RECORD_LINK_H_

#include <optional>
#include <string>
#include <string_view>

namespace hvd {

// Replaces the record. False: the reader is gone.
bool LeaveRecord(int link, std::string_view record);

// Blocks until the other end is closed. Nothing: no complete record arrived.
std::optional<std::string> ReadLastRecord(int link);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_LINKS_RECORD_LINK_H_
