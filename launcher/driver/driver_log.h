// DriverLog: messages of hvdrun itself on the screen, filtered by the log level. The number of INFO
// lines does not grow with the number of hosts; --verbose is the level DEBUG.
#ifndef HVD_LAUNCHER_DRIVER_DRIVER_LOG_H_
#define HVD_LAUNCHER_DRIVER_DRIVER_LOG_H_

#include <cstdint>
#include <set>
#include <string>

#include "configs/settings.h"
#include "launcher/output/screen.h"
#include "launcher/wire/plan.h"
#include "runtime/base/log.h"

namespace hvd {

// The arguments of a command on one line.
std::string CommandText(const std::vector<std::string>& command);

LogLevel LogLevelOf(const Settings& settings);

class DriverLog {
 public:
  // The hosts' names are those of `plan`. Both references outlive this object.
  DriverLog(LogLevel level, const Plan& plan, Screen& screen)
      : level_(level), plan_(plan), screen_(screen) {}

  LogLevel level() const { return level_; }
  void Print(LogLevel level, const std::string& sentence);
  void Info(const std::string& sentence) { Print(LogLevel::kInfo, sentence); }
  void Verbose(const std::string& sentence) { Print(LogLevel::kDebug, sentence); }
  // "host NAME: " and the text.
  void VerboseHost(uint32_t host, const std::string& text);
  // A warning of the host's agent, at every level.
  void Warning(uint32_t host, const std::string& text);
  // An installed hvdrun was not run there (OnHvdrunSkipped); at every level, once for all hosts
  // where the text is the same.
  void HvdrunSkipped(uint32_t host, const std::string& text);

 private:
  std::string Of(uint32_t host) const { return "host " + plan_.hosts[host] + ": "; }

  const LogLevel level_;
  const Plan& plan_;
  Screen& screen_;
  std::set<std::string> skipped_;  // texts that HvdrunSkipped has shown
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_DRIVER_LOG_H_
