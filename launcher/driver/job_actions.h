// JobActions: carries out what the job decides (job.h). Most actions are messages to every agent.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_JOB_ACTIONS_H_
#define HVD_LAUNCHER_DRIVER_JOB_ACTIONS_H_

#include "launcher/driver/agent_network.h"
#include "launcher/driver/driver_log.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/external_launcher.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/driver/recordings.h"
#include "launcher/driver/worker_starter.h"
#include "launcher/job/job.h"
#include "launcher/output/screen.h"
#include "runtime/base/clock.h"

namespace hvd {

class JobActions {
 public:
  // All of them outlive this object. `begun`: when the job was.
  JobActions(const DriverOptions& options, const JobState& state, TimePoint begun,
             const JobHosts& hosts, AgentNetwork& network, WorkerStarter& starter,
             ExternalLauncher& launcher, Recordings& recordings, Screen& screen, DriverLog& log)
      : options_(options),
        state_(state),
        begun_(begun),
        hosts_(hosts),
        network_(network),
        starter_(starter),
        launcher_(launcher),
        recordings_(recordings),
        screen_(screen),
        log_(log) {}

  void Execute(const JobAction& action, TimePoint now);
  // Nothing of the job is left, but remote cleanups and an external launcher may still run.
  bool job_over() const { return job_over_; }

 private:
  template <typename Message>
  void On(const Message& message) {
    network_.agents().SendToAll(message);
  }
  void On(const UsePlan&);
  void On(const ProveAddresses&) { network_.ProbeAddresses(); }
  void On(const RelayRoutes& relay) { network_.OpenRelay(relay); }
  void On(const OpenHost& open);
  void On(const StartLauncher&) { launcher_.Start(); }
  void On(const StartMembers& start) { starter_.Start(start); }
  void On(const BeginWorld& begin);
  void On(const SignalWorker& message) { SendToWorker(message.rank, message); }
  void On(const DismissWorker& message) { SendToWorker(message.rank, message); }
  void On(const AskMemory& message) { SendToWorker(message.rank, message); }
  void On(const NotifyUser& notice);
  void On(const FinishJob& finish);
  void On(const DismissHost& dismiss) { network_.agents().Send(dismiss.host, FinishJob{}); }
  void On(const CutHost& cut) { network_.agents()[cut.host].Cut(); }
  void On(const CutChannels&);
  void On(const EndRun&);

  void BeginWithMembers(const BeginWorld& begin);
  void SendToWorker(uint32_t worker, const ToAgent& message);

  const DriverOptions& options_;
  const JobState& state_;
  const TimePoint begun_;
  const JobHosts& hosts_;
  AgentNetwork& network_;
  WorkerStarter& starter_;
  ExternalLauncher& launcher_;
  Recordings& recordings_;
  Screen& screen_;
  DriverLog& log_;
  bool job_over_ = false;
  TimePoint now_{};  // of the action that is being carried out
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_JOB_ACTIONS_H_
