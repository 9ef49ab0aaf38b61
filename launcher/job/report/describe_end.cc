#include "launcher/job/report/describe_end.h"

#include <csignal>
#include <cstring>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// The usual meaning of a signal, for those whose name does not say it.
std::string Meaning(int signal) {
  switch (signal) {
    case SIGSEGV: return ": invalid memory access (segmentation fault)";
    case SIGABRT: return ": it called abort()";
    case SIGBUS: return ": a file or shared memory that it had mapped is gone or full";
    case SIGILL: return ": its program holds an instruction that this CPU does not know";
    case SIGFPE: return ": it divided an integer by zero";
    case SIGXFSZ: return ": it wrote a file larger than its limit allows (ulimit -f)";
    case SIGKILL: return ", sent by a process, not by the OOM killer";
    case SIGTERM:
    case SIGINT:
    case SIGHUP: return ", sent by a process that is not part of hvdrun";
    default: return "";
  }
}

}  // namespace

std::string SignalText(int signal) {
  std::string name = SignalName(signal);
  std::string text = Format("signal {}", signal);
  return name.empty() ? text : text + " (" + name + ")";
}

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "" : std::string("SIG") + name;
}

std::string DescribeEnd(const ProcessEnd& end) {
  return end.by_signal ? SignalText(end.value) : Format("exit code {}", end.value);
}

std::string DescribeCause(const RankRecord& rank) {
  if (!rank.end) return "it was lost";
  std::string text = DescribeEnd(*rank.end);
  if (rank.end->out_of_memory) {
    return text +
           ", most likely by the kernel for lack of memory: it ended a process there just before. "
           "Try fewer processes per host or smaller batches";
  }
  if (rank.end->by_signal && !rank.end->by_us) text += Meaning(rank.end->value);
  return text;
}

const char* RankStateName(const RankRecord& rank) {
  if (rank.pid == 0) return "not_started";
  if (!rank.end) return "lost";
  if (rank.end->by_us) return "ended";
  if (!rank.end->ok()) return "failed";
  return rank.loss || rank.awaited ? "left" : "succeeded";
}

}  // namespace hvd
