// The driver: runs one job over the lines to its hosts (host_line.h). Carries events to the state machine (job.h) and
// its actions to the agents, the workers' output to the screen (screen.h), and stdin to the workers. One thread, beside
// those of the screen and of the reader of stdin.
#ifndef HVD_LAUNCHER_DRIVER_H_
#define HVD_LAUNCHER_DRIVER_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "launcher/agent_connection.h"
#include "launcher/host_stages.h"
#include "launcher/plan.h"
#include "launcher/prefix.h"

namespace hvd {

// A host of the plan, beyond its name.
struct DriverHost {
  bool remote = false;                 // not this machine
  std::vector<std::string> addresses;  // where its ranks listen for others; known once proven
};

struct DriverOptions {
  std::string job_id, job_key;
  Plan plan;
  Settings settings;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value"
  std::string directory;
  std::vector<std::string> given_environment;  // "NAME=value", from --env-file and -x
  std::string master_address;                  // for torch.distributed; empty: this machine
  uint32_t master_port = 0;                    // 0: none
  std::vector<DriverHost> hosts;               // by host of the plan
  std::vector<HostSlots>
      named_hosts;  // the same, as they were named: until their agents are there the plan is a draft
  std::vector<std::string> interfaces;     // for what hosts say to each other; empty: all
  uint16_t first_port = 0, last_port = 0;  // both 0: any
  StageLimits stage_limits = StageLimits::Default();
  PrefixTemplate prefix = PrefixTemplate::Default();
  bool stdin_terminal = false;

  // The ranks of different hosts need the network.
  bool several_machines() const;
};

// Makes the way to the agent of a host of the plan.
using ChannelFactory = std::function<HostTransport(asio::io_context&, uint32_t host)>;

// Returns hvdrun's exit code when nothing of the job is left.
int RunJob(DriverOptions options, const ChannelFactory& make_channel);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_H_
