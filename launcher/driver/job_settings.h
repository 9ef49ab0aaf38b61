// The limits of a job and of its connections, from its settings.
#ifndef HVD_LAUNCHER_DRIVER_JOB_SETTINGS_H_
#define HVD_LAUNCHER_DRIVER_JOB_SETTINGS_H_

#include <cstdint>

#include "launcher/driver/agents/agent_connection.h"
#include "launcher/driver/driver_options.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

JobOptions JobOptionsOf(const DriverOptions& options);
// Of the connection to a host; `remote`: it is not this machine.
Heartbeat HeartbeatOf(const Settings& settings, bool remote);
// How long agents wait for hvdrun, or for the one that takes over, after their connection is lost.
int64_t DriverGraceMs(const DriverOptions& options);
// How long a route between two hosts may be silent. A job that tolerates lost connections to agents
// for some time tolerates those between hosts for as long.
Duration RouteSilenceLimit(const Settings& settings);
// How long an agent that lost its parent in the tree keeps its place in the job.
Duration LostParentLimit(const Settings& settings);
// How long ranks that use another library's collectives may show no progress; 0: no limit.
int64_t ScriptWarningMs(const Settings& settings);
// 0 and more; "for ever" without overflow.
Duration SecondsOf(double seconds);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_JOB_SETTINGS_H_
