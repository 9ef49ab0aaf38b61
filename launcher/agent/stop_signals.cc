#include "launcher/agent/stop_signals.h"

#include <signal.h>

namespace hvd {

void StopSignals::Open() {
  for (int signal : {SIGTERM, SIGUSR1}) {
    struct sigaction inherited {};
    if (::sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
      signals_.add(signal);
  }
  Wait();
}

void StopSignals::Wait() {
  signals_.async_wait([this](const asio::error_code& error, int signal) {
    if (error) return;
    const bool asked = ask_(signal);
    signals_.clear();  // they have their default effect again
    if (!asked) ::raise(signal);
  });
}

}  // namespace hvd
