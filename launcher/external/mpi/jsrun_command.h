// The command by which jsrun of LSF starts a process for each rank of a plan, and its file of
// resource sets. Pure.
#ifndef HVD_LAUNCHER_EXTERNAL_MPI_JSRUN_COMMAND_H_
#define HVD_LAUNCHER_EXTERNAL_MPI_JSRUN_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"

namespace hvd {

// An explicit resource file: each rank on its host, with an equal contiguous share of the CPUs, and
// all GPUs and memory. `cpus`: of each host, by number; if fewer than ranks, some ranks share a
// CPU.
std::string ResourceFile(const Plan& plan, const std::vector<uint32_t>& cpus);

// `resource_file`: its path; replaced by --binding-args.
Result<std::vector<std::string>> JsrunCommand(const std::string& program,
                                              const std::string& resource_file,
                                              const Settings& settings,
                                              const std::vector<std::string>& process);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_MPI_JSRUN_COMMAND_H_
