#include "launcher/process/links/record_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace hvd {
namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);

}  // namespace

bool LeaveRecord(int link, std::string_view record) {
  const uint64_t length = record.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  bytes += record;
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t sent = ::send(link, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) left.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::optional<std::string> ReadLastRecord(int link) {
  std::optional<std::string> record;
  std::string bytes;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = ::read(link, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return record;
    bytes.append(piece.data(), static_cast<size_t>(got));
    uint64_t length = 0;
    while (bytes.size() >= kLengthBytes) {
      std::memcpy(&length, bytes.data(), kLengthBytes);
      if (bytes.size() - kLengthBytes < length) break;
      record = bytes.substr(kLengthBytes, length);
      bytes.erase(0, kLengthBytes + length);
    }
  }
}

}  // namespace hvd
