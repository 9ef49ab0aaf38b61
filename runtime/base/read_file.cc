#include "runtime/base/read_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr int kMostMilliseconds = 60'000;  // of one poll

Status CannotBeRead(int error) { return SystemError("cannot be read", error); }

Status TooLong(const ReadLimits& limits) {
  return InvalidArgument(Format("is longer than {} MiB", limits.bytes >> 20));
}

Status TooSlow(const ReadLimits& limits) {
  auto seconds = std::chrono::ceil<std::chrono::seconds>(limits.time).count();
  return InvalidArgument(
      Format("has not ended within {} s: does anything write into it?", seconds));
}

}  // namespace

Result<std::string> ReadFileWithin(const std::string& path, const ReadLimits& limits) {
  const TimePoint end = SteadyNow() + limits.time;
  // open() of a pipe without a writer would block, and a terminal could become our controlling
  // terminal.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return CannotBeRead(errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode))
    return InvalidArgument("is a directory");
  std::string text, buffer(64 * 1024, '\0');
  while (true) {
    const TimePoint now = SteadyNow();
    if (now >= end) return TooSlow(limits);
    pollfd wait{fd.get(), POLLIN, 0};
    if (::poll(&wait, 1, MillisecondsUntil(end, now, kMostMilliseconds)) <= 0) continue;
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno != EAGAIN && errno != EINTR) return CannotBeRead(errno);
    if (got > 0) text.append(buffer, 0, static_cast<size_t>(got));
    if (text.size() > limits.bytes) return TooLong(limits);
  }
}

}  // namespace hvd
