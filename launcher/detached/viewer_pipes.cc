#include "launcher/detached/viewer_pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace hvd {
namespace {

constexpr size_t kReadAtOnce = 1 << 16;

bool MayComeLater(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

void MakeNonblocking(int fd) { (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

bool SendSome(int fd, std::string* outgoing) {
  if (outgoing->empty()) return true;
  const ssize_t sent = ::write(fd, outgoing->data(), outgoing->size());
  if (sent < 0) return MayComeLater(errno);
  outgoing->erase(0, static_cast<size_t>(sent));
  return true;
}

bool ReceiveSome(int fd, std::string* bytes) {
  bytes->resize(kReadAtOnce);
  const ssize_t got = ::read(fd, bytes->data(), bytes->size());
  const bool there = got > 0 || (got < 0 && MayComeLater(errno));
  bytes->resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return there;
}

}  // namespace hvd
