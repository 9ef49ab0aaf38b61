#include "runtime/base/log.h"

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace hvd {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace: return spdlog::level::trace;
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kFatal: return spdlog::level::critical;
  }
  return spdlog::level::warn;
}

// Leaked on purpose: lines may be written by threads that outlive static destructors.
spdlog::logger& Logger() {
  static spdlog::logger* logger = [] {
    auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>();
    auto* made = new spdlog::logger("hvd", sink);
    made->set_pattern("[hvd %l] %v");
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return *logger;
}

}  // namespace

void SetLog(LogLevel level, std::string_view who) {
  Logger().set_level(ToSpdlog(level));
  Logger().set_pattern("[" + std::string(who) + " %l] %v");
}

LogLevel ParseLogLevel(std::string_view text, LogLevel fallback) {
  constexpr std::array<std::string_view, 6> kNames = {"trace",   "debug", "info",
                                                      "warning", "error", "fatal"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  auto found = std::find(kNames.begin(), kNames.end(), lower);
  return found == kNames.end() ? fallback : static_cast<LogLevel>(found - kNames.begin());
}

void Log(LogLevel level, std::string_view text) {
  Logger().log(ToSpdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace hvd
