// The driver: runs one job over the connections to its agents (agent_connection.h). Brings events
// to the state machine (job.h), carries out its actions (job_actions.h), shows the workers' output
// (screen.h) and sends stdin to the workers. One thread, apart from those of the screen and of the
// stdin reader.
#ifndef HVD_LAUNCHER_DRIVER_DRIVER_H_
#define HVD_LAUNCHER_DRIVER_DRIVER_H_

#include "launcher/channels/factory/channel_factory.h"
#include "launcher/driver/driver_options.h"
#include "launcher/elastic_hosts/host_watch.h"
#include "launcher/external/mpi/launcher_run.h"

namespace hvd {

// Blocks until nothing of the job is left and returns hvdrun's exit code. `channels` reaches the
// hosts of the plan; `watch_hosts` is asked in an elastic job only, `make_launcher` in one whose
// ranks another launcher starts.
int RunJob(DriverOptions options, ChannelFactory& channels,
           const HostWatchMaker& watch_hosts = nullptr,
           const LauncherMaker& make_launcher = nullptr);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_DRIVER_H_
