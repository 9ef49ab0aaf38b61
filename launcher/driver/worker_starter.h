// WorkerStarter: has the agents start the workers of a job. The agent of a host gets the host's
// part of the job (StartJob) with the first workers there, and more workers later (AddWorkers).
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_WORKER_STARTER_H_
#define HVD_LAUNCHER_DRIVER_WORKER_STARTER_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "launcher/driver/agent_network.h"
#include "launcher/driver/driver_log.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/event_queue.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/driver/stock_worlds.h"
#include "launcher/driver/worker_stdin.h"
#include "launcher/job/state/job_state.h"
#include "launcher/output/screen.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"

namespace hvd {

class WorkerStarter {
 public:
  // All of them outlive this object. `stock`: null if the workers use our runtime.
  WorkerStarter(const DriverOptions& options, const JobState& state, JobHosts& hosts,
                AgentNetwork& network, EventQueue& events, Screen& screen, DriverLog& log,
                WorkerStdin& input, StockWorlds* stock)
      : options_(options),
        state_(state),
        hosts_(hosts),
        network_(network),
        events_(events),
        screen_(screen),
        log_(log),
        stdin_(input),
        stock_(stock) {}

  void Start(const StartMembers& start);
  // For an elastic job that was taken over, whose workers run already; `hosts`: whose agents have
  // their part of it.
  void UseRunning(std::set<uint32_t> hosts);
  // The hosts of an elastic job whose agents have their part of it.
  const std::set<uint32_t>& hosts_with_part() const { return has_part_; }

 private:
  void StartAll();
  void SendParts();
  void StartMembersOf(const StartMembers& start);
  void StartOn(uint32_t host, const std::vector<Member>& members, const StartMembers& start,
               const Plan& plan, const StartJob& common);
  void SetMasterAt(uint32_t host);
  bool BeginStockWorld(const std::vector<Placement>& places);

  const DriverOptions& options_;
  const JobState& state_;
  JobHosts& hosts_;
  AgentNetwork& network_;
  EventQueue& events_;
  Screen& screen_;
  DriverLog& log_;
  WorkerStdin& stdin_;
  StockWorlds* const stock_;
  std::set<uint32_t> has_part_;
};

// The members of each host.
std::map<uint32_t, std::vector<Member>> ByHost(const std::vector<Member>& members);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_WORKER_STARTER_H_
