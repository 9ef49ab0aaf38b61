// ForwardedSignals: forwards warning signals (SIGUSR1, SIGUSR2) to the ranks and makes the line for
// the user when no rank handles one. Pure.
#ifndef HVD_LAUNCHER_DRIVER_SERVICES_FORWARDED_SIGNALS_H_
#define HVD_LAUNCHER_DRIVER_SERVICES_FORWARDED_SIGNALS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

class ForwardedSignals {
 public:
  // The message for each of these hosts; they have ranks.
  ForwardSignal Begin(int signal, const std::vector<uint32_t>& hosts);
  // The next two: a sentence once it is known that no rank handles the signal; else "".
  std::string Handle(uint32_t host, const std::string& name, const SignalForwarded& answer,
                     TimePoint now);
  std::string HostGone(uint32_t host, TimePoint now);

 private:
  struct Signal {
    int signal = 0;
    std::set<uint32_t> awaited;
    uint32_t ranks = 0;
  };
  std::string Finish(uint32_t number, TimePoint now);
  bool ShownLately(int signal, TimePoint now);

  std::map<uint32_t, Signal> signals_;  // by number
  uint32_t last_ = 0;
  std::map<int, TimePoint> shown_;  // by signal
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_SERVICES_FORWARDED_SIGNALS_H_
