#include "launcher/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;  // of the known_hosts of a very large site

}  // namespace

std::string ReadSmallFile(const std::string& path) {
  // A pipe that nobody writes to is empty, and a device that never ends is cut.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::string text;
  if (!fd.valid()) return text;
  char buffer[4096];
  ssize_t got = 0;
  while (text.size() < kMostBytes && (got = ::read(fd.get(), buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

}  // namespace hvd
