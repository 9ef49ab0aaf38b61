#include "launcher/stall/stack_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "launcher/process/thread_state.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr off_t kMostKept = 1 << 20;
constexpr size_t kMostOfFile = 64 * 1024;
constexpr std::string_view kTarget = "/memfd:hvd-stacks";

// The number may be that of any file by now.
UniqueFd Open(pid_t pid, const StallBoard& board) {
  const std::string path =
      Format("/proc/{}/fd/{}", pid, board.stack_fd.load(std::memory_order_relaxed));
  std::array<char, 64> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size() - 1);
  if (length <= 0 || !std::string_view(target.data()).starts_with(kTarget)) return {};
  return UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
}

}  // namespace

int64_t AskForStacks(pid_t pid, const StallBoard& board) {
  const auto signal = static_cast<int>(board.stack_signal.load(std::memory_order_acquire));
  // Without its handler the signal would end the process.
  if (signal < SIGRTMIN || signal > SIGRTMAX || !HandlesSignal(pid, signal)) return -1;
  const UniqueFd file = Open(pid, board);
  struct stat info {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return -1;
  // It is written to at its end.
  if (info.st_size > kMostKept && ::ftruncate(file.get(), 0) == 0) info.st_size = 0;
  return ::kill(pid, signal) == 0 ? info.st_size : -1;
}

std::string ReadStacks(pid_t pid, const StallBoard& board, int64_t from) {
  const UniqueFd file = Open(pid, board);
  if (!file.valid() || from < 0) return "";
  std::string text(kMostOfFile, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

}  // namespace hvd
