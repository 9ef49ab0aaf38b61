#include "launcher/external/mpi/launcher_end.h"

#include <sys/wait.h>

#include <sstream>

#include "configs/message_text.h"
#include "launcher/job/report/describe_end.h"
#include "launcher/process/process_end.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kMostQuoted = 400;

// A ruler around a paragraph.
bool IsRuler(const std::string& line) {
  return line.size() > 3 && line.find_first_not_of("-=") == std::string::npos;
}

}  // namespace

std::string FirstWords(const std::string& said) {
  std::istringstream lines(said);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(" \t\r");
    const bool empty = begin == std::string::npos || IsRuler(line);
    if (empty && !text.empty()) break;
    if (empty) continue;
    const size_t end = line.find_last_not_of(" \t\r");
    text += (text.empty() ? "" : " ") + line.substr(begin, end - begin + 1);
  }
  return Printable(text, kMostQuoted);
}

LauncherEnd ReadLauncherEnd(const CommandEnd& end) {
  const std::string words = FirstWords(end.said);
  if (WIFSIGNALED(end.wait_status)) {
    const int signal = WTERMSIG(end.wait_status);
    return {"was ended by " + SignalText(signal), words, kSignalBase + signal,
            /*by_signal=*/!end.killed};
  }
  const int code = WEXITSTATUS(end.wait_status);
  return {Format("ended with exit code {}", code), words, code};
}

}  // namespace hvd
