#include "launcher/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/unique_fd.h"

namespace hvd {

std::string ReadSmallFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd.valid()) return text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(fd.get(), buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

}  // namespace hvd
