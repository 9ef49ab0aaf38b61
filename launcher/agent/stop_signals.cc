#include "launcher/agent/stop_signals.h"

#include <signal.h>

namespace hvd {
namespace {

void AddUnlessIgnored(asio::signal_set& signals, int signal) {
  struct sigaction inherited {};
  if (::sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
    signals.add(signal);
}

}  // namespace

void StopSignals::OpenWarnings() {
  AddUnlessIgnored(warnings_, SIGUSR1);
  AddUnlessIgnored(warnings_, SIGUSR2);
  WaitForWarning();
}

void StopSignals::WaitForWarning() {
  warnings_.async_wait([this](const asio::error_code& error, int signal) {
    if (error) return;
    if (warn_(signal)) terms_.clear();
    WaitForWarning();
  });
}

void StopSignals::Open() {
  AddUnlessIgnored(terms_, SIGTERM);
  terms_.async_wait([this](const asio::error_code& error, int signal) {
    if (error) return;
    // Restores the default action before the driver answers: the next signal may come as soon as
    // the driver has reported this one.
    terms_.clear();
    if (!ask_(signal)) ::raise(signal);
  });
}

}  // namespace hvd
