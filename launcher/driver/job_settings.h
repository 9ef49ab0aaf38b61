// The limits of a job and of its connections, by its settings.
#ifndef HVD_LAUNCHER_DRIVER_JOB_SETTINGS_H_
#define HVD_LAUNCHER_DRIVER_JOB_SETTINGS_H_

#include <cstdint>

#include "launcher/driver/agents/agent_connection.h"
#include "launcher/driver/driver_options.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

JobOptions JobOptionsOf(const DriverOptions& options);
// Of the connection to a host of the plan.
Heartbeat HeartbeatOf(const DriverOptions& options, uint32_t host);
// How long a route between two hosts may be silent: a job that may lose its connections to agents
// for a while may lose those between its hosts as long.
Duration RouteSilenceLimit(const Settings& settings);
// How long an agent that lost its parent in the tree keeps its place in the job.
Duration LostParentLimit(const Settings& settings);
// How long ranks that use collectives of another library may show nothing; 0: for ever.
int64_t ScriptWarningMs(const Settings& settings);
// 0 and more; "for ever" without overflow.
Duration SecondsOf(double seconds);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_JOB_SETTINGS_H_
