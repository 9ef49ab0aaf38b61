// Worlds started by other launchers (mpirun, srun, Ray) that can be viewed on this machine: they
// have no hvdrun, but their agent here answers hvdrun top and hvdrun dump.
#ifndef HVD_LAUNCHER_LIVE_EXTERNAL_VIEWS_H_
#define HVD_LAUNCHER_LIVE_EXTERNAL_VIEWS_H_

#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/jobs/local_jobs.h"
#include "runtime/base/status.h"

namespace hvd {

// Their ids, from the text of /proc/net/unix, without duplicates. Pure.
std::vector<std::string> ExternalViewsIn(std::string_view unix_sockets);

// Those of this user in this network namespace.
std::vector<std::string> ListExternalViews();

// The id of the job or world to view: `prefix` is an id or the beginning of one; empty: the only
// one. kInvalidArgument if there is none, several, or only a part of a job here. Pure.
Result<std::string> FindView(const std::vector<JobHere>& jobs,
                             const std::vector<std::string>& external, std::string_view prefix);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_EXTERNAL_VIEWS_H_
