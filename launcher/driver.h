// The driver: runs one job over the channels of its hosts. Carries events to the state machine (job.h) and its actions
// to the agents, and the workers' lines to the screen. One thread, plus one writer per screen stream that has output.
#ifndef HVD_LAUNCHER_DRIVER_H_
#define HVD_LAUNCHER_DRIVER_H_

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "launcher/host_channel.h"
#include "launcher/plan.h"
#include "launcher/prefix.h"

namespace hvd {

struct DriverOptions {
  std::string job_id, job_key;
  Plan plan;
  Settings settings;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value"
  std::string directory;
  std::vector<std::string> given_environment;  // "NAME=value", from --env-file and -x
  uint32_t master_port = 0;                    // for torch.distributed; 0: none
  PrefixTemplate prefix = PrefixTemplate::Default();
};

// Makes the channel to the agent of a host.
using ChannelMaker =
    std::function<std::unique_ptr<HostChannel>(asio::io_context&, const std::string& host)>;

// Returns hvdrun's exit code when nothing of the job is left.
int RunJob(DriverOptions options, const ChannelMaker& make_channel);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_H_
