// JobActions: carries out what the job decides (job.h). Most actions are messages to every agent.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_JOB_ACTIONS_H_
#define HVD_LAUNCHER_DRIVER_JOB_ACTIONS_H_

#include <string>

#include "launcher/driver/driver_parts.h"
#include "launcher/job/job.h"

namespace hvd {

class JobActions {
 public:
  // `parts` outlives this object.
  explicit JobActions(DriverParts& parts) : parts_(parts) {}

  void Execute(const JobAction& action, TimePoint now);

 private:
  template <typename Message>
  void On(const Message& message) {
    parts_.agents.SendToAll(message);
  }
  void On(const UsePlan&);
  void On(const DismissHost& dismiss) { parts_.agents.Send(dismiss.host, FinishJob{}); }
  void On(const ProveAddresses&);
  void On(const RelayRoutes& relay);
  void On(const StartWorkers&);
  void On(const BeginGeneration& begin);
  void On(const CutHost& cut) { parts_.agents[cut.host].Cut(); }
  void On(const CutChannels&);
  void On(const NotifyUser& notice);
  void On(const EndRun&);

  void FormTree();
  void SendParts();
  void ReadStdin();
  void SendStdin(std::string bytes);

  DriverParts& parts_;
  TimePoint now_{};  // of the action that is being carried out
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_JOB_ACTIONS_H_
