// The standby of a detached job's hvdrun: a process that is forked before the job begins and waits.
// When hvdrun is killed, it becomes hvdrun and goes on with the job, by the record that hvdrun has
// left it: it has the same options, environment, folder, and pipe for output. So the job's key is
// in no file, and no other process can take the job over.
//
// It is no child of hvdrun, which ends what its children leave, and in a session of its own.
#ifndef HVD_LAUNCHER_DETACHED_STANDBY_H_
#define HVD_LAUNCHER_DETACHED_STANDBY_H_

#include <optional>
#include <string>

#include "launcher/detached/detached_job.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// In the process that is hvdrun from now on.
struct Succession {
  UniqueFd link;  // to its standby (launcher/process/links/record_link.h)
  std::optional<std::string>
      record;  // that its predecessor left when it was killed; none: the first
};

// Forks, so it is called before any thread is started. Returns in hvdrun at once, and in the
// standby once that was killed and had left a record; then there is another standby. Not ok: there
// is none.
Result<Succession> BeginSuccession(DetachedJob job);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_STANDBY_H_
