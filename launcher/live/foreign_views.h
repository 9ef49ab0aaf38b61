// Worlds of ranks that others started (mpirun, srun, Ray), as far as they can be looked at here:
// they have no hvdrun, but their agent on this machine answers hvdrun top and hvdrun dump.
#ifndef HVD_LAUNCHER_LIVE_FOREIGN_VIEWS_H_
#define HVD_LAUNCHER_LIVE_FOREIGN_VIEWS_H_

#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/jobs/local_jobs.h"
#include "runtime/base/status.h"

namespace hvd {

// Their ids, by the text of /proc/net/unix; each once. Pure.
std::vector<std::string> ForeignViewsIn(std::string_view unix_sockets);

// Those of this user in this network namespace.
std::vector<std::string> ListForeignViews();

// The id of what a user wants to look at: the named job or world, or the only one where `wish` is
// empty. A word is an id or its beginning. kInvalidArgument where there is none, several, or only a
// part of a job here. Pure.
Result<std::string> ViewToTake(const std::vector<JobHere>& jobs,
                               const std::vector<std::string>& foreign, std::string_view wish);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_FOREIGN_VIEWS_H_
