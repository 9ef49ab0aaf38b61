#include "launcher/external/adopt/rank_stderr.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

bool WriteToStderrOf(pid_t pid, const std::string& text) {
  const std::string path = Format("/proc/{}/fd/2", pid);
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return file.valid() && ::write(file.get(), text.data(), text.size()) > 0;
}

}  // namespace hvd
