// ExternalLauncher: mpirun or jsrun, which starts the ranks in place of the agents (LauncherRun).
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_EXTERNAL_LAUNCHER_H_
#define HVD_LAUNCHER_DRIVER_EXTERNAL_LAUNCHER_H_

#include <asio/io_context.hpp>
#include <memory>
#include <utility>

#include "launcher/driver/agents/agent_set.h"
#include "launcher/driver/driver_log.h"
#include "launcher/driver/event_queue.h"
#include "launcher/external/mpi/launcher_run.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

class ExternalLauncher {
 public:
  // All of them outlive this object. `make` is asked in a job with such a launcher only.
  ExternalLauncher(asio::io_context& io, LauncherMaker make, const JobState& state,
                   AgentSet& agents, EventQueue& events, DriverLog& log)
      : io_(io),
        make_(std::move(make)),
        state_(state),
        agents_(agents),
        events_(events),
        log_(log) {}
  ExternalLauncher(const ExternalLauncher&) = delete;

  void Start();
  // The job is over.
  void End();
  // It was not started, or has ended.
  bool over() const { return run_ == nullptr || run_->over(); }

 private:
  asio::io_context& io_;
  const LauncherMaker make_;
  const JobState& state_;
  AgentSet& agents_;
  EventQueue& events_;
  DriverLog& log_;
  std::unique_ptr<LauncherRun> run_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_EXTERNAL_LAUNCHER_H_
