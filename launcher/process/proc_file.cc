#include "launcher/process/proc_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;  // of the known_hosts of a very large site

}  // namespace

std::string ReadSmallFile(const std::string& path) {
  // A pipe without a writer is empty, and an endless device is cut.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::string text;
  if (!fd.valid()) return text;
  char buffer[4096];
  ssize_t got = 0;
  while (text.size() < kMostBytes && (got = ::read(fd.get(), buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

bool IsOwnProcess(pid_t pid) {
  struct stat info {};
  return ::stat((Format("/proc/{}", pid)).c_str(), &info) == 0 && info.st_uid == ::geteuid();
}

std::optional<std::string> VariableIn(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    size_t end = std::min(environment.find('\0'), environment.size());
    std::string_view entry = environment.substr(0, end);
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return std::string(entry.substr(name.size() + 1));
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return std::nullopt;
}

}  // namespace hvd
