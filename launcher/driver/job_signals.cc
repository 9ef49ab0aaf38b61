#include "launcher/driver/job_signals.h"

#include <signal.h>

namespace hvd {

SignalAction ActionFor(int signal, bool job_over) {
  if (signal == SIGCONT) return SignalAction::kResume;
  if (signal == SIGTSTP) return SignalAction::kPause;
  if (signal == SIGUSR1 && !job_over) return SignalAction::kStopAfterStep;
  return job_over ? SignalAction::kLeave : SignalAction::kInterrupt;
}

void JobSignals::Open(bool elastic) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGUSR1}) {
    if (signal == SIGUSR1 && !elastic) continue;
    struct sigaction inherited {};
    if (::sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
      signals_.add(signal);
  }
  Wait();
}

void JobSignals::StopSelf() { ::raise(SIGSTOP); }

void JobSignals::Wait() {
  signals_.async_wait([this](const asio::error_code& error, int signal) {
    if (error) return;
    on_signal_(signal);
    Wait();
  });
}

}  // namespace hvd
