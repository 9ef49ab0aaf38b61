#include "launcher/driver/job_signals.h"

#include <signal.h>

namespace hvd {

SignalAction ActionFor(int signal, bool job_over) {
  if (signal == SIGCONT) return SignalAction::kResume;
  if (signal == SIGTSTP) return SignalAction::kPause;
  if (signal == SIGUSR1 || signal == SIGUSR2)
    return job_over ? SignalAction::kNothing : SignalAction::kForward;
  return job_over ? SignalAction::kLeave : SignalAction::kInterrupt;
}

void JobSignals::Open() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2, SIGQUIT, SIGXCPU,
                     SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT}) {
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
