#include "launcher/process/links/pass_descriptors.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace hvd {
namespace {

constexpr size_t kMostMessageBytes = 256;

// Collects all of them, so that none stays open unnoticed.
std::vector<UniqueFd> DescriptorsIn(msghdr& header) {
  std::vector<UniqueFd> found;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      found.emplace_back(fd);
    }
  }
  return found;
}

}  // namespace

Status PassDescriptors(int socket, const std::string& bytes, const std::vector<int>& descriptors) {
  if (bytes.empty() || bytes.size() > kMostMessageBytes || descriptors.size() > kMostDescriptors)
    return InvalidArgument("too much for one message");
  std::string text = bytes;
  iovec data{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (const size_t size = descriptors.size() * sizeof(int); size > 0) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(c), descriptors.data(), size);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(bytes.size())) return Status::Ok();
  return SystemError("the other process does not take descriptors", errno);
}

std::optional<PassedDescriptors> ReceiveDescriptors(int socket) {
  std::array<char, kMostMessageBytes> bytes{};
  iovec data{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got <= 0) return PassedDescriptors{};
  PassedDescriptors passed{std::string(bytes.data(), static_cast<size_t>(got)),
                           DescriptorsIn(header)};
  if ((header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) passed.descriptors.clear();
  return passed;
}

}  // namespace hvd
