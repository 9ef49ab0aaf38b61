// The keeper of a detached job: a process that stores the output of the job's hvdrun in files,
// waits for hvdrun and records how it ended, even if hvdrun was killed. If the keeper itself is
// killed, hvdrun continues: it holds the read end of the pipe (1 MiB) open, and the user's next
// subcommand starts a new keeper (Tend).
//
// Both run in their own sessions, without a terminal. Main threads only.
#ifndef HVD_LAUNCHER_DETACHED_KEEPER_H_
#define HVD_LAUNCHER_DETACHED_KEEPER_H_

#include <signal.h>

#include <functional>

#include "launcher/detached/detached_job.h"
#include "runtime/base/status.h"

namespace hvd {

// Starts `run` (hvdrun; returns the exit code) and its keeper in processes of their own. `job` has
// its name, folder, id, command and limits; the rest is filled in. Forks, so call it before any
// thread is started; returns in the caller only, once the job has been recorded. Not ok: it could
// not be recorded, and nothing runs. The caller has blocked SIGINT and SIGTERM; hvdrun restores the
// mask `signals`.
Status StartDetached(DetachedJob* job, const sigset_t& signals, const std::function<int()>& run);

// Starts a new keeper if the previous one was killed, or records the end if hvdrun is gone, too.
// Reloads `job`, with its end even if that cannot be written.
Status Tend(DetachedJob* job);

// Removes the folder of a damaged job. Not ok: it belongs to another user, or its keeper is alive.
Status RemoveDamagedJob(const DamagedJob& damaged);

// Removes the folders of jobs that ended longer ago than `seconds`.
void ForgetOldJobs(const std::vector<DetachedJob>& jobs, int64_t now, double seconds);

// The end of an hvdrun that did not write its exit code, from its wait status. Pure.
DetachedEnd EndOfKilled(int wait_status, int64_t now);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_KEEPER_H_
