#include "launcher/channels/command_end.h"

#include <sys/wait.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "configs/message_text.h"
#include "launcher/process/process_end.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kMostQuoted = 300;

int CodeOf(const CommandEnd& end) {
  return WIFEXITED(end.wait_status) ? WEXITSTATUS(end.wait_status)
                                    : kSignalBase + WTERMSIG(end.wait_status);
}

}  // namespace

std::string LastOutput(const std::string& printed) {
  std::vector<std::string> lines;
  std::istringstream stream(printed);
  for (std::string line; std::getline(stream, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty() || line.starts_with("Warning: Permanently added")) continue;
    lines.push_back(line);
  }
  std::string text;
  for (size_t i = lines.size() - std::min<size_t>(lines.size(), 2); i < lines.size(); ++i)
    text += (text.empty() ? "" : " / ") + lines[i];
  return Printable(text, kMostQuoted);
}

std::string EndOfAgent(const CommandEnd& end) {
  const int code = CodeOf(end);
  if (code == 0) return end.connected ? "" : "it ended before the agent said a word";
  std::string output = LastOutput(end.printed);
  std::string text = code > kSignalBase
                         ? Format("the agent was ended by signal {}", code - kSignalBase)
                         : Format("the agent ended with exit code {}", code);
  return output.empty() ? text : text + ": " + output;
}

ChannelEnd EndOfAgentIn(ChannelStage stage, const CommandEnd& end) {
  return {stage, EndOfAgent(end), /*may_pass=*/false, CodeOf(end) > kSignalBase};
}

}  // namespace hvd
