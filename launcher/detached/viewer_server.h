// The end of hvdrun attach -H on the host of the job.
#ifndef HVD_LAUNCHER_DETACHED_VIEWER_SERVER_H_
#define HVD_LAUNCHER_DETACHED_VIEWER_SERVER_H_

#include "launcher/detached/detached_job.h"
#include "runtime/base/status.h"

namespace hvd {

// Sends the output of the job to `out`, and records up to where the other side says on `in` that it
// has shown it, until `in` ends. Not ok: what came is not from hvdrun attach, or the record cannot
// be written.
Status ServeViewer(const DetachedJob& job, int in, int out);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_VIEWER_SERVER_H_
