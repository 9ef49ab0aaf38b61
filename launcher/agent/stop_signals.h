// StopSignals: handles signals to an agent that warn or ask it to stop. SIGUSR1 and SIGUSR2 are
// warnings and are forwarded to the ranks. SIGTERM to the agent of an elastic job asks the job to
// stop after its step. If it cannot, or if it was asked before, SIGTERM ends the agent as it would
// any process.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_AGENT_STOP_SIGNALS_H_
#define HVD_LAUNCHER_AGENT_STOP_SIGNALS_H_

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <functional>
#include <utility>

namespace hvd {

class StopSignals {
 public:
  // `ask`: forwards the request; false: no rank of this host trains. `warn`: forwards the signal;
  // true: it counts as a request to stop.
  StopSignals(asio::io_context& io, std::function<bool(int signal)> ask,
              std::function<bool(int signal)> warn)
      : terms_(io), warnings_(io), ask_(std::move(ask)), warn_(std::move(warn)) {}

  // From now on SIGUSR1 and SIGUSR2 are passed on, and with `Open` SIGTERM asks. A signal that was
  // ignored when this process began stays ignored.
  void OpenWarnings();
  void Open();

 private:
  void WaitForWarning();

  asio::signal_set terms_, warnings_;
  const std::function<bool(int signal)> ask_, warn_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_STOP_SIGNALS_H_
