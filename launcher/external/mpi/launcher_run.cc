#include "launcher/external/mpi/launcher_run.h"

#include <sys/wait.h>

#include <sstream>
#include <utility>

#include "configs/message_text.h"
#include "launcher/job/report/describe_end.h"
#include "launcher/process/process_end.h"
#include "runtime/base/text/format.h"

namespace hvd {

LauncherRun::LauncherRun(asio::io_context& io, std::vector<std::string> command,
                         std::shared_ptr<LocalFamily> family, OnOver on_over)
    : command_(std::move(command)),
      on_over_(std::move(on_over)),
      channel_(
          io, command_,
          [this](const CommandEnd& end) {
            end_ = ReadLauncherEnd(end);
            return ChannelEnd{};
          },
          std::move(family)) {}

void LauncherRun::End(bool silent) {
  if (over_) return;
  silent ? channel_.Kill() : channel_.Close();
}

// The channel itself has a reason if the launcher could not be started.
void LauncherRun::OnEnd(const ChannelEnd& end) {
  over_ = true;
  if (end_.reason.empty()) end_ = {"could not be started", end.reason, 1};
  on_over_(end_);
}

namespace {

constexpr size_t kMostQuoted = 400;

// A ruler around a paragraph.
bool IsRuler(const std::string& line) {
  return line.size() > 3 && line.find_first_not_of("-=") == std::string::npos;
}

}  // namespace

std::string FirstParagraph(const std::string& printed) {
  std::istringstream lines(printed);
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
  const std::string words = FirstParagraph(end.printed);
  if (WIFSIGNALED(end.wait_status)) {
    const int signal = WTERMSIG(end.wait_status);
    return {"was ended by " + SignalText(signal), words, kSignalBase + signal,
            /*by_signal=*/!end.killed};
  }
  const int code = WEXITSTATUS(end.wait_status);
  return {Format("ended with exit code {}", code), words, code};
}

}  // namespace hvd
