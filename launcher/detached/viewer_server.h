// The server side of hvdrun attach -H, on the host of the job.
#ifndef HVD_LAUNCHER_DETACHED_VIEWER_SERVER_H_
#define HVD_LAUNCHER_DETACHED_VIEWER_SERVER_H_

#include "launcher/detached/detached_job.h"
#include "runtime/base/status.h"

namespace hvd {

// Sends the output of the job to `out`, and records how much the viewer reports on `in` as shown,
// until `in` ends. Not ok: a protocol violation, or the record cannot be written.
Status ServeViewer(const DetachedJob& job, int in, int out);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_VIEWER_SERVER_H_
