#include "launcher/driver/driver_log.h"

#include <algorithm>

#include "configs/message_text.h"
#include "launcher/channels/bundle/remote_script.h"

namespace hvd {

LogLevel LogLevelOf(const Settings& settings) {
  return settings.verbose ? std::min(settings.log_level, LogLevel::kDebug) : settings.log_level;
}

void DriverLog::Print(LogLevel level, const std::string& sentence) {
  if (level >= level_) screen_.Print(sentence);
}

void DriverLog::VerboseHost(uint32_t host, const std::string& text) { Verbose(Of(host) + text); }

void DriverLog::Warning(uint32_t host, const std::string& text) {
  constexpr size_t kMostShown = 400;
  screen_.Print(Of(host) + Printable(text, kMostShown));
}

void DriverLog::HvdrunSkipped(uint32_t host, const std::string& text) {
  const std::string sentence = Of(host) + text + "; " + kSkipAdvice;
  if (!skipped_.insert(text).second) return Verbose(sentence);
  screen_.Print(sentence);
}

std::string CommandText(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace hvd
