// The standby of a detached job's hvdrun: a process forked before the job begins. When hvdrun is
// killed, the standby becomes hvdrun and continues the job from the record that it was sent; it has
// the same options, environment, folder and output pipe. So the job's key is in no file, and no
// other process can take the job over.
//
// It is not a child of hvdrun, which kills what its children leave, and runs in its own session.
#ifndef HVD_LAUNCHER_DETACHED_STANDBY_H_
#define HVD_LAUNCHER_DETACHED_STANDBY_H_

#include <optional>
#include <string>

#include "launcher/detached/detached_job.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// The state of the process that is hvdrun from now on.
struct Succession {
  UniqueFd link;                      // to its own standby (launcher/process/links/record_link.h)
  std::optional<std::string> record;  // of the predecessor that was killed; none: this is the first
};

// Forks, so call it before any thread is started. Returns in hvdrun at once, and in the standby
// after hvdrun was killed and had left a record; a new standby has been forked by then. Not ok:
// there is no standby.
Result<Succession> BeginSuccession(DetachedJob job);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_STANDBY_H_
