// Log lines to stderr, "[hvd warning] text". The only file that uses spdlog.
#ifndef HVD_RUNTIME_BASE_LOG_H_
#define HVD_RUNTIME_BASE_LOG_H_

#include <string>
#include <string_view>

namespace hvd {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kFatal };

// Lines below `level` are dropped. `who` names the program or rank in each line.
struct LogSettings {
  LogLevel level = LogLevel::kWarning;
  std::string who = "hvd";
};

// Sets the log of this program or library; each has its own. Not while other threads log.
void SetLog(LogSettings settings);
const LogSettings& CurrentLog();

// Parses "trace" ... "fatal", case-insensitive; `fallback` for anything else.
LogLevel ParseLogLevel(std::string_view text, LogLevel fallback);

// Writes one line immediately; thread-safe; never throws, errors are ignored.
void Log(LogLevel level, std::string_view text);

inline void LogDebug(std::string_view text) { Log(LogLevel::kDebug, text); }
inline void LogInfo(std::string_view text) { Log(LogLevel::kInfo, text); }
inline void LogWarning(std::string_view text) { Log(LogLevel::kWarning, text); }
inline void LogError(std::string_view text) { Log(LogLevel::kError, text); }

}  // namespace hvd

#endif  // HVD_RUNTIME_BASE_LOG_H_
