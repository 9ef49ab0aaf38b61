#include "launcher/stall/stack_reader.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/process/process_tree.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr auto kLimit = std::chrono::seconds(5);
constexpr size_t kMostReason = 300;

// The last line that py-spy wrote: of a chain of causes ("    1: EPERM: ...") the innermost, and
// none of a backtrace of its own.
std::string LastLine(std::string_view text) {
  text = text.substr(0, text.find("\n\nStack backtrace:"));
  while (text.ends_with('\n')) text.remove_suffix(1);
  text.remove_prefix(text.rfind('\n') + 1);
  if (text.starts_with(' '))
    text.remove_prefix(std::min(text.find_first_not_of(" 0123456789:"), text.size()));
  return std::string(text.substr(0, kMostReason));
}

}  // namespace

bool RunsPython(pid_t pid) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink(Format("/proc/{}/exe", pid), error);
  return !error && program.filename().string().starts_with("python");
}

std::string WhyNoStacks(const std::string* text, bool installed) {
  if (text != nullptr && text->find("Thread ") != text->npos) return "";
  if (!installed)
    return "py-spy is not on the PATH of its host: pip install py-spy, or hvdrun[stacks]";
  if (text == nullptr) return "--no-stall-check-stacks forbids it";
  if (text->empty()) return Format("py-spy did not answer within {} s", kLimit.count());
  const bool forbidden =
      text->find("ermission") != text->npos || text->find("not permitted") != text->npos;
  return "py-spy says: " + LastLine(*text) +
         (forbidden ? "; docker run --cap-add SYS_PTRACE or sysctl kernel.yama.ptrace_scope=0 "
                      "would allow it"
                    : "");
}

pid_t PythonBelow(pid_t root, const std::vector<ProcessInfo>& all,
                  const std::function<bool(pid_t)>& runs_python) {
  std::deque<pid_t> next{root};
  while (!next.empty()) {
    const pid_t pid = next.front();
    next.pop_front();
    if (runs_python(pid)) return pid;
    for (const ProcessInfo& process : all) {
      if (process.parent == pid && process.state != 'Z') next.push_back(process.pid);
    }
  }
  return root;
}

void StackReader::Answer(const AskStacks& question, const Workers& workers) {
  const std::vector<ProcessInfo> all = ListProcesses();
  std::vector<pid_t> pids;
  for (const auto& [worker, pid] : workers) pids.push_back(PythonBelow(pid, all, RunsPython));
  const bool installed = OutsideStacks::IsInstalled();
  outside_.Ask(
      pids,
      [this, number = question.number, workers, pids,
       installed](const OutsideStacks::Texts& texts) {
        StacksReply reply{number, {}};
        for (size_t i = 0; i < workers.size(); ++i) {
          const auto found = texts.find(pids[i]);
          const std::string* text = found == texts.end() ? nullptr : &found->second;
          WorkerStacks stacks{workers[i].first, "", ""};
          stacks.reason = WhyNoStacks(text, installed);
          if (stacks.reason.empty()) stacks.text = *text;
          reply.workers.push_back(std::move(stacks));
        }
        send_(reply);
      },
      kLimit, OutsideStacks::Errors::kKept,
      question.native != 0 ? OutsideStacks::Frames::kNative : OutsideStacks::Frames::kPython);
}

}  // namespace hvd
