// The driver: runs one job over the connections to its agents (agent_connection.h). Carries events
// to the state machine (job.h) and its actions to the agents, the workers' output to the screen
// (screen.h), and stdin to the workers. One thread, beside those of the screen and of the reader of
// stdin.
#ifndef HVD_LAUNCHER_DRIVER_DRIVER_H_
#define HVD_LAUNCHER_DRIVER_DRIVER_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>

#include "launcher/driver/agent_connection.h"
#include "launcher/driver/driver_options.h"

namespace hvd {

// Makes the connection to the agent of a host of the plan.
using ChannelFactory = std::function<HostTransport(asio::io_context&, uint32_t host)>;

// Returns hvdrun's exit code when nothing of the job is left.
int RunJob(DriverOptions options, const ChannelFactory& make_channel);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_DRIVER_H_
