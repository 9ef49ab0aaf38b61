#include "launcher/process/one_process.h"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "launcher/process/proc_file.h"

namespace hvd {
namespace {

// The fields after the command name, which may itself hold blanks and parentheses.
std::optional<ProcessInfo> ParseStat(pid_t pid, const std::string& stat) {
  size_t close = stat.rfind(')');
  if (close == std::string::npos) return std::nullopt;
  ProcessInfo info;
  info.pid = pid;
  int parent = 0, group = 0, session = 0;
  unsigned long long start = 0;
  int fields =
      std::sscanf(stat.c_str() + close + 1,
                  " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &info.state, &parent, &group, &session, &start);
  if (fields != 5) return std::nullopt;
  info.parent = parent;
  info.session = session;
  info.start_ticks = start;
  return info;
}

}  // namespace

std::optional<ProcessInfo> LookAtProcess(pid_t pid) {
  return ParseStat(pid, ReadProcFile(pid, "stat"));
}

std::optional<uint64_t> ResidentBytes(pid_t pid) {
  unsigned long long pages = 0;
  if (std::sscanf(ReadProcFile(pid, "statm").c_str(), "%*u %llu", &pages) != 1) return std::nullopt;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool IsDying(pid_t pid) {
  constexpr unsigned kExiting = 0x4 | 0x8 | 0x200 | 0x400;  // PF_EXITING, and those of a core dump
  constexpr uint64_t kKill = uint64_t{1} << (SIGKILL - 1);
  std::string stat = ReadProcFile(pid, "stat"), status = ReadProcFile(pid, "status");
  char state = 'X';
  unsigned flags = 0;
  size_t close = stat.rfind(')');
  if (close == std::string::npos ||
      std::sscanf(stat.c_str() + close + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
    return true;
  if (state == 'Z' || state == 'X' || (flags & kExiting) != 0) return true;
  for (const char* pending : {"\nSigPnd:", "\nShdPnd:"}) {
    size_t at = status.find(pending);
    if (at == std::string::npos) continue;
    if ((std::strtoull(status.c_str() + at + std::strlen(pending), nullptr, 16) & kKill) != 0)
      return true;
  }
  return false;
}

}  // namespace hvd
