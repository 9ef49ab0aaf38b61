// What the agent of a host is told to start.
#ifndef HVD_LAUNCHER_START_JOB_H_
#define HVD_LAUNCHER_START_JOB_H_

#include "launcher/driver.h"
#include "launcher/messages.h"

namespace hvd {

// The job's part on host `host` of the plan. Pure.
StartJob StartJobFor(const DriverOptions& options, uint32_t host);

// A port of the loopback address that nobody has at this moment, for a server that rank 0 may start; 0: there is none.
uint32_t FreePort();

}  // namespace hvd

#endif  // HVD_LAUNCHER_START_JOB_H_
