// Makes the StartJob messages, which tell the agent of a host what to start.
#ifndef HVD_LAUNCHER_DRIVER_START_JOB_H_
#define HVD_LAUNCHER_DRIVER_START_JOB_H_

#include <string>
#include <vector>

#include "launcher/channels/bundle/install_paths.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"

namespace hvd {

// The part that is the same for all hosts. `plan`: of the ranks that are started, or run. Pure.
StartJob CommonStart(const DriverOptions& options, const Plan& plan, const MasterAddress& master);
// `common` for host `host` of the plan, with its ranks. Pure.
StartJob StartJobOn(uint32_t host, std::vector<Placement> slots, const Plan& plan,
                    const DriverOptions& options, const JobHosts& hosts, StartJob common);
// Both, for one host and before the job begins.
StartJob StartJobFor(const DriverOptions& options, uint32_t host);

// The PATH that the workers get and in which their command is looked up. Pure.
std::string PathOfWorkers(const DriverOptions& options);

// Not ok: the kernel would reject the workers' arguments and variables as too long.
Status CheckExecSize(const DriverOptions& options, const InstallPaths& paths);

// Not ok: this process may open too few descriptors for an agent to start; each rank and host needs
// some more.
Status CheckDescriptorLimit();

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_START_JOB_H_
