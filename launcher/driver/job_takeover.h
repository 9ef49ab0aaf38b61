// JobTakeover: this hvdrun goes on with the job of one that was killed. From the record come the
// hosts, of an elastic job also its state; each agent then sends a snapshot of its host; and what
// has been missed since becomes events and actions of the job (takeover/).
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_JOB_TAKEOVER_H_
#define HVD_LAUNCHER_DRIVER_JOB_TAKEOVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/driver/agent_messages.h"
#include "launcher/driver/agent_network.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/event_queue.h"
#include "launcher/driver/job_actions.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/driver/takeover/adoption.h"
#include "launcher/driver/takeover/takeover_record.h"
#include "launcher/driver/worker_starter.h"
#include "launcher/job/state/job_state.h"
#include "launcher/output/screen.h"
#include "launcher/wire/messages.h"

namespace hvd {

class JobTakeover {
 public:
  // All of them outlive this object. `options` has a record of the former hvdrun; where the job
  // finds its hosts, their connections are added here.
  JobTakeover(const DriverOptions& options, JobState& state, JobHosts& hosts, AgentNetwork& network,
              WorkerStarter& starter, JobActions& actions, AgentMessages& messages,
              EventQueue& events, Screen& screen);

  // Connects to the agents that wait for this hvdrun.
  void Open();
  // Until the job goes on, messages of agents and lost agents are passed to these two.
  void Handle(uint32_t host, ToDriver message);
  void HandleLost(uint32_t host, const std::string& reason);
  // The job does not go on yet.
  bool pending() const { return adoption_.has_value(); }
  // All agents have answered, or were waited for.
  bool complete() const { return adoption_ && adoption_->complete(); }
  // The job goes on. `interrupts`: the signals that asked it to end, since it began.
  void GoOn(const std::vector<int32_t>& interrupts);

 private:
  void RestoreState();
  void GoOnFixed(Adoption adoption, const std::vector<int32_t>& interrupts);
  void GoOnElastic(Adoption adoption, const std::vector<int32_t>& interrupts);
  void PushLost(const Adoption& adoption);
  void ReceiveKept(Adoption& adoption);

  const DriverOptions& options_;
  const TakeoverRecord& record_;
  JobState& state_;
  JobHosts& hosts_;
  AgentNetwork& network_;
  WorkerStarter& starter_;
  JobActions& actions_;
  AgentMessages& messages_;
  EventQueue& events_;
  Screen& screen_;
  std::optional<Adoption> adoption_;  // while agents have not answered
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_JOB_TAKEOVER_H_
