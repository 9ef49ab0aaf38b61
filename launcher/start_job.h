// What the agent of a host is told to start.
#ifndef HVD_LAUNCHER_START_JOB_H_
#define HVD_LAUNCHER_START_JOB_H_

#include <string>
#include <vector>

#include "launcher/driver.h"
#include "launcher/messages.h"
#include "launcher/worker_env.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// What all hosts are told alike. Pure.
StartJob CommonStart(const DriverOptions& options);
// `common` for host `host` of the plan, with its ranks. Pure.
StartJob StartOn(uint32_t host, std::vector<Placement> slots, const DriverOptions& options,
                 StartJob common);
// Both: the job's part on one host.
StartJob StartJobFor(const DriverOptions& options, uint32_t host);

// PATH as the workers get it, and as their command is looked for. Pure.
std::string PathOfWorkers(const DriverOptions& options);

// A sentence when the kernel would not take the workers' arguments and variables.
Status CheckExecSize(const DriverOptions& options, const InstallPaths& paths);

// A port of the loopback address for a server that rank 0 may start; 0: there is none. It stays ours while the socket
// lives: nobody is given it by chance, and a server with SO_REUSEADDR (as nearly all have) can listen there.
struct HeldPort {
  UniqueFd socket;
  uint32_t port = 0;
};
HeldPort HoldPort(bool everywhere = false);

}  // namespace hvd

#endif  // HVD_LAUNCHER_START_JOB_H_
