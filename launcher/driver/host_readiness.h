// HostReadiness: what an agent reports about its host, in this order, until the host is ready: that
// it runs (AgentReady), in an elastic job with a standby where it waits for another hvdrun
// (AgentPath), and what the command of the job is there (CommandReport).
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_HOST_READINESS_H_
#define HVD_LAUNCHER_DRIVER_HOST_READINESS_H_

#include <cstdint>
#include <map>

#include "launcher/driver/agent_network.h"
#include "launcher/driver/driver_log.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/event_queue.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/driver/stock_worlds.h"
#include "launcher/job/state/job_state.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

class HostReadiness {
 public:
  // All of them outlive this object. `stock`: null if the workers use our runtime.
  HostReadiness(const DriverOptions& options, const JobState& state, JobHosts& hosts,
                AgentNetwork& network, EventQueue& events, DriverLog& log, StockWorlds* stock)
      : options_(options),
        state_(state),
        hosts_(hosts),
        network_(network),
        events_(events),
        log_(log),
        stock_(stock) {}

  // Not ok: a sentence about "its agent", for AgentConnection::Break.
  Status Handle(uint32_t host, const AgentReady& ready, TimePoint now);
  Status Handle(uint32_t host, const AgentPath&, TimePoint);
  Status Handle(uint32_t host, const CommandReport& report, TimePoint);

 private:
  void SetReady(uint32_t host);
  bool awaits_path() const;

  const DriverOptions& options_;
  const JobState& state_;
  JobHosts& hosts_;
  AgentNetwork& network_;
  EventQueue& events_;
  DriverLog& log_;
  StockWorlds* const stock_;
  std::map<uint32_t, AgentFacts> facts_;  // by host
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_HOST_READINESS_H_
