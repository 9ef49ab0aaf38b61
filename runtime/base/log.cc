#include "runtime/base/log.h"

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/colours.h"

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

class ProgramLog {
 public:
  ProgramLog() {
    const bool colours = WantsColours(STDERR_FILENO);
    sink_->set_color_mode(colours ? spdlog::color_mode::always : spdlog::color_mode::never);
    Set({});
  }
  void Set(LogSettings settings) {
    logger_.set_level(ToSpdlog(settings.level));
    logger_.set_pattern("[" + settings.who + " %^%l%$] %v");
    settings_ = std::move(settings);
  }
  const LogSettings& settings() const { return settings_; }
  spdlog::logger& logger() { return logger_; }

 private:
  LogSettings settings_;
  std::shared_ptr<spdlog::sinks::ansicolor_stderr_sink_mt> sink_ =
      std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>();
  spdlog::logger logger_{"hvd", sink_};
};

// Leaked on purpose: threads that outlive static destructors may write lines.
ProgramLog& TheLog() {
  static auto* log = new ProgramLog;
  return *log;
}

}  // namespace

void SetLog(LogSettings settings) { TheLog().Set(std::move(settings)); }
const LogSettings& CurrentLog() { return TheLog().settings(); }

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
  TheLog().logger().log(ToSpdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace hvd
