// Runs a program such as `mpirun --version` to its end and collects its output.
#ifndef HVD_LAUNCHER_EXTERNAL_MPI_ASK_PROGRAM_H_
#define HVD_LAUNCHER_EXTERNAL_MPI_ASK_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "launcher/process/local_family.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

// Its stdout followed by its stderr, whatever its exit code. An error if it cannot be started or
// exceeds `limit`. Main thread only.
Result<std::string> AskProgram(const std::vector<std::string>& command,
                               const std::shared_ptr<LocalFamily>& family, Duration limit);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_MPI_ASK_PROGRAM_H_
