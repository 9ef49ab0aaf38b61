#include "launcher/process/thread_state.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <sstream>
#include <utility>

#include "launcher/process/proc_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

using Call = std::pair<long, std::string_view>;

// System calls in which a process may block for long.
constexpr auto kCalls = std::to_array<Call>({
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_close, "close"},
    {SYS_fstat, "fstat"},
    {SYS_ioctl, "ioctl"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_sendfile, "sendfile"},
    {SYS_connect, "connect"},
    {SYS_accept, "accept"},
    {SYS_sendto, "sendto"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_wait4, "wait4"},
    {SYS_semop, "semop"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_fcntl, "fcntl"},
    {SYS_flock, "flock"},
    {SYS_fsync, "fsync"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_futex, "futex"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_waitid, "waitid"},
    {SYS_openat, "openat"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_pselect6, "pselect6"},
    {SYS_ppoll, "ppoll"},
    {SYS_splice, "splice"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_accept4, "accept4"},
    {SYS_getrandom, "getrandom"},
});
#if defined(SYS_open)
constexpr auto kOlderCalls = std::to_array<Call>({
    {SYS_open, "open"},
    {SYS_stat, "stat"},
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_pause, "pause"},
    {SYS_epoll_wait, "epoll_wait"},
});
#else  // aarch64 has only the calls that replaced them
constexpr std::array<Call, 0> kOlderCalls{};
#endif

std::string Number(pid_t pid) { return std::to_string(pid); }

}  // namespace

ThreadState ParseStat(std::string_view stat) {
  ThreadState found;
  // The name, in parentheses, may contain any characters.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return found;
  std::istringstream rest{std::string(stat.substr(name_end + 1))};
  std::string word;
  constexpr int kState = 3, kUserTicks = 14, kSystemTicks = 15;  // fields as in proc(5)
  for (int field = kState; field <= kSystemTicks && rest >> word; ++field) {
    if (field == kState) found.state = word;
    if (field < kUserTicks) continue;
    found.cpu_ticks += ParseWhole<uint64_t>(word).value_or(0);
  }
  return found;
}

uint64_t ParseTicks(std::string_view stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return 0;
  std::istringstream rest{std::string(stat.substr(name_end + 1))};
  std::string word;
  uint64_t ticks = 0;
  constexpr int kState = 3, kUserTicks = 14, kChildSystemTicks = 17;
  for (int field = kState; field <= kChildSystemTicks && rest >> word; ++field) {
    if (field >= kUserTicks) ticks += ParseWhole<uint64_t>(word).value_or(0);
  }
  return ticks;
}

uint64_t ParseCount(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    line.remove_prefix(name.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return ParseWhole<uint64_t>(line).value_or(0);
  }
  return 0;
}

std::string ParseSyscall(std::string_view text) {
  long call = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), call);
  if (error != std::errc() || call < 0) return "";  // "running", or held outside of a call
  for (const auto calls : {std::span<const Call>(kCalls), std::span<const Call>(kOlderCalls)}) {
    for (const auto& [number, name] : calls) {
      if (number == call) return std::string(name);
    }
  }
  return Format("number {}", call);
}

bool ParseHandles(std::string_view status, int signal) {
  constexpr std::string_view kField = "\nSigCgt:\t";
  const size_t at = status.find(kField);
  if (at == std::string_view::npos || signal < 1 || signal > 64) return false;
  const std::string_view digits = status.substr(at + kField.size(), 16);
  uint64_t mask = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

ThreadState ReadThreadState(pid_t pid) {
  ThreadState found = ParseStat(ReadProcFile(Number(pid) + "/stat"));
  if (found.state.empty() || found.state == "Z") return found;
  found.blocked_in = ParseSyscall(ReadProcFile(Number(pid) + "/syscall"));
  if (!found.blocked_in.empty() || found.state == "R") return found;
  const std::string where = ReadProcFile(Number(pid) + "/wchan");
  if (where != "0") found.blocked_in = where;
  return found;
}

ProcessUse ReadProcessUse(pid_t pid) {
  const std::string moved = ReadProcFile(Number(pid) + "/io");
  return {ParseTicks(ReadProcFile(Number(pid) + "/stat")),
          ParseCount(moved, "rchar") + ParseCount(moved, "wchar")};
}

uint64_t ReadSleeps(pid_t pid) {
  return ParseCount(ReadProcFile(Number(pid) + "/status"), "voluntary_ctxt_switches");
}

bool HandlesSignal(pid_t pid, int signal) {
  return ParseHandles(ReadProcFile(Number(pid) + "/status"), signal);
}

}  // namespace hvd
