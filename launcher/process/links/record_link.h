// A record that one process leaves with another over a socket: the last whole one counts, also when
// the writer is killed in the middle of the next.
#ifndef HVD_LAUNCHER_PROCESS_LINKS_RECORD_LINK_H_
#define HVD_LAUNCHER_PROCESS_LINKS_RECORD_LINK_H_

#include <optional>
#include <string>
#include <string_view>

namespace hvd {

// Replaces the record. False: the reader is gone.
bool LeaveRecord(int link, std::string_view record);

// Waits until the other end is closed. Nothing: no whole record came.
std::optional<std::string> ReadLastRecord(int link);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_LINKS_RECORD_LINK_H_
