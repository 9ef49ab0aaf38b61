// StopSignals: SIGTERM and SIGUSR1 to the agent of an elastic job. The first of them asks the job
// to stop after its step; one that cannot, and every later one, ends the agent as it would end any
// process.
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
  // `ask`: passes the request on; false: no rank of this host trains.
  StopSignals(asio::io_context& io, std::function<bool(int signal)> ask)
      : signals_(io), ask_(std::move(ask)) {}

  // From now on. A signal that was ignored when this process began stays ignored.
  void Open();

 private:
  void Wait();

  asio::signal_set signals_;
  const std::function<bool(int signal)> ask_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_STOP_SIGNALS_H_
