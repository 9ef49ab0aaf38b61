// The keeper of a detached job: the process that reads what the job's hvdrun prints and puts it
// into files, waits for the end of hvdrun and records it. So output and end are kept although
// hvdrun was killed. When the keeper itself is killed, hvdrun goes on: it holds the pipe open,
// which has room for 1 MiB, and the next verb of the user makes a new keeper (Tend).
//
// Each runs in a session of its own, without a terminal. Main threads only.
#ifndef HVD_LAUNCHER_DETACHED_KEEPER_H_
#define HVD_LAUNCHER_DETACHED_KEEPER_H_

#include <signal.h>

#include <functional>

#include "launcher/detached/detached_job.h"
#include "runtime/base/status.h"

namespace hvd {

// Starts `run`, which is hvdrun, in a process of its own, and its keeper. `job` has its name,
// folder, id, command and limits; the rest is filled in. Forks, so it is called before any thread
// is started, and only one process returns from it: the caller. `run` returns the exit code. When
// it returns, what the job is has been recorded; not ok: it could not be, and nothing runs. The
// caller has blocked SIGINT and SIGTERM; hvdrun gets back what `signals` says.
Status StartDetached(DetachedJob* job, const sigset_t& signals, const std::function<int()>& run);

// Makes a new keeper where the former one was killed, or records the end when hvdrun is gone, too.
// `job` is read again, and has its end even where that cannot be written.
Status Tend(DetachedJob* job);

// Removes the folder of a damaged job. Not ok: it is another user's, or its keeper lives.
Status RemoveDamagedJob(const DamagedJob& damaged);

// Removes the folders of jobs that ended longer ago than `seconds`.
void ForgetOldJobs(const std::vector<DetachedJob>& jobs, int64_t now, double seconds);

// The end of an hvdrun that could not write its exit code: its wait status. Pure.
DetachedEnd EndOfKilled(int wait_status, int64_t now);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_KEEPER_H_
