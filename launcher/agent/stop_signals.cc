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
    // They have their default effect again before the answer: the next may come as soon as the
    // driver has spoken of this one.
    signals_.clear();
    if (!ask_(signal)) ::raise(signal);
  });
}

}  // namespace hvd
