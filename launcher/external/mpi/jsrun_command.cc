#include "launcher/external/mpi/jsrun_command.h"

#include <algorithm>

#include "launcher/external/mpi/mpi_command.h"
#include "runtime/base/text/format.h"

namespace hvd {

std::string ResourceFile(const Plan& plan, const std::vector<uint32_t>& cpus) {
  std::string text = "overlapping_rs: allow\ncpu_index_using: logical\n";
  for (const Placement& place : plan.ranks) {
    if (place.local_rank == 0) text += "\n";
    const uint32_t here = std::max(1U, cpus[place.host]);
    const uint32_t width = std::max(1U, here / std::max(1U, place.local_size));
    const uint32_t first = place.local_rank * width % here;
    text += Format("rank: {}: {{ hostname: {}; cpu: {{{}-{}}} ; gpu: * ; mem: * }}\n", place.rank,
                   plan.hosts[place.host], first, first + width - 1);
  }
  return text;
}

Result<std::vector<std::string>> JsrunCommand(const std::string& program,
                                              const std::string& resource_file,
                                              const Settings& settings,
                                              const std::vector<std::string>& process) {
  Result<std::vector<std::string>> binding = SplitMpiArgs("--binding-args", settings.binding_args);
  if (!binding.ok()) return binding.status();
  std::vector<std::string> command = {program};
  if (binding->empty()) *binding = {"--erf_input", resource_file};
  command.insert(command.end(), binding->begin(), binding->end());
  std::string mpi_args = settings.tcp ? "-tcp" : "";
  if (!settings.mpi_args.empty()) mpi_args += (mpi_args.empty() ? "" : " ") + settings.mpi_args;
  if (!mpi_args.empty()) command.insert(command.end(), {"--smpiargs", mpi_args});
  command.insert(command.end(), process.begin(), process.end());
  return command;
}

}  // namespace hvd
