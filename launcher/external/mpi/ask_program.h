// The output of a program, such as `mpirun --version`, which is run to its end, within a limit.
#ifndef HVD_LAUNCHER_EXTERNAL_MPI_ASK_PROGRAM_H_
#define HVD_LAUNCHER_EXTERNAL_MPI_ASK_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "launcher/process/local_family.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

// Its output and then its errors, whatever it ends with. An error where it cannot be started, or
// does not end in time. Main thread only.
Result<std::string> AskProgram(const std::vector<std::string>& command,
                               const std::shared_ptr<LocalFamily>& family, Duration limit);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_MPI_ASK_PROGRAM_H_
