// JobSignals: the signals that hvdrun acts on while its job runs: SIGTSTP (Ctrl-Z), SIGCONT,
// SIGUSR1 and SIGUSR2, which warn, and all others whose default action would end hvdrun without a
// word: SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGXCPU and the like end the job. A signal that was
// ignored when hvdrun began (nohup) stays ignored.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_JOB_SIGNALS_H_
#define HVD_LAUNCHER_DRIVER_JOB_SIGNALS_H_

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <functional>

namespace hvd {

enum class SignalAction {
  kInterrupt,  // end the job
  kPause,      // stop the workers, then hvdrun itself
  kResume,     // hvdrun goes on after SIGCONT
  kForward,    // to the ranks that handle it; SIGUSR1 also asks them to stop after their step
  kLeave,      // the job is over: hvdrun ends without waiting for what is left
  kNothing,
};
// `job_over`: nothing but remote cleanups is left to do. Pure.
SignalAction ActionFor(int signal, bool job_over);

class JobSignals {
 public:
  using OnSignal = std::function<void(int signal)>;

  JobSignals(asio::io_context& io, OnSignal on_signal)
      : signals_(io), on_signal_(std::move(on_signal)) {}

  // Begins to handle the signals that are not ignored.
  void Open();
  // The signals have their default effect again.
  void Close() { signals_.clear(); }
  // Stops this process until SIGCONT; the shell takes over.
  static void StopSelf();

 private:
  void Wait();

  asio::signal_set signals_;
  const OnSignal on_signal_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_JOB_SIGNALS_H_
