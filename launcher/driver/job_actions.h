// JobActions: carries out what the job decides (job.h). Most actions are messages to every agent.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_JOB_ACTIONS_H_
#define HVD_LAUNCHER_DRIVER_JOB_ACTIONS_H_

#include <set>
#include <string>
#include <vector>

#include "launcher/driver/driver_parts.h"
#include "launcher/job/job.h"

namespace hvd {

class JobActions {
 public:
  // `parts` outlives this object.
  explicit JobActions(DriverParts& parts) : parts_(parts) {}

  void Execute(const JobAction& action, TimePoint now);
  // For a job that was taken over, whose workers are running already.
  void UseRunning() { FormTree(); }
  // The same of an elastic job; `hosts`: whose agents have their part of it.
  void UseRunning(const std::set<uint32_t>& hosts);
  // Has the agent of the host wait for another hvdrun if this one dies.
  void AwaitSuccessorAt(uint32_t host);

 private:
  template <typename Message>
  void On(const Message& message) {
    parts_.agents.SendToAll(message);
  }
  void On(const StartLauncher&) {}  // the driver has started it, and added the host of OpenHost
  void On(const UsePlan&);
  void On(const FinishJob& finish);
  void On(const DismissHost& dismiss) { parts_.agents.Send(dismiss.host, FinishJob{}); }
  void On(const ProveAddresses&);
  void On(const RelayRoutes& relay);
  void On(const BeginWorld& begin);
  void On(const OpenHost& open);
  void On(const StartMembers& start);
  void On(const SignalWorker& message) { SendToWorker(message.rank, message); }
  void On(const DismissWorker& message) { SendToWorker(message.rank, message); }
  void On(const AskMemory& message) { SendToWorker(message.rank, message); }
  void On(const CutHost& cut) { parts_.agents[cut.host].Cut(); }
  void On(const CutChannels&);
  void On(const NotifyUser& notice);
  void On(const EndRun&);

  void StartAll();
  void SendToWorker(uint32_t worker, const ToAgent& message);
  void ShowPlace(const Placement& place);
  void StartOn(uint32_t host, const std::vector<Member>& members, const StartMembers& start,
               const StartJob& common);
  void SetMasterAt(uint32_t host);
  bool OneMachine(const std::vector<Member>& members) const;
  void FormTree();
  bool BeginStockWorld(const std::vector<Placement>& places);
  void SendParts();
  void BeginWithMembers(const BeginWorld& begin);
  void ReadStdin();
  void SendStdin(std::string bytes);

  DriverParts& parts_;
  std::set<uint32_t> has_part_;  // hosts of an elastic job whose agent got StartJob
  TimePoint now_{};              // of the action that is being carried out
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_JOB_ACTIONS_H_
