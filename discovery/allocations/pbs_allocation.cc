#include "discovery/allocations/pbs_allocation.h"

#include <string>
#include <utility>

#include "configs/message_text.h"
#include "discovery/allocations/machine_list.h"

namespace hvd {

Result<std::optional<Allocation>> FindPbsAllocation(const AllocationFacts& facts) {
  const std::optional<std::string> id = facts.Text("PBS_JOBID");
  const std::optional<std::string> path = facts.Text("PBS_NODEFILE");
  if (!id && !path) return std::optional<Allocation>();
  if (!path) {
    return InvalidArgument(
        "PBS_JOBID is set and PBS_NODEFILE is not, so the hosts of this PBS job are not known");
  }
  const std::string source = "PBS's file " + Printable(*path, kMaxShownPath) + " (PBS_NODEFILE)";
  const Result<std::string> text = facts.read_file(*path);
  if (!text.ok()) return InvalidArgument(source + " " + text.status().message());
  MachineList list(source);
  HVD_RETURN_IF_ERROR(list.AddLines(*text));
  Result<std::vector<HostSpec>> hosts = list.Finish();
  if (!hosts.ok()) return hosts.status();
  Allocation allocation;
  allocation.name = id ? "PBS job " + *id : "the PBS job";
  allocation.hosts = std::move(*hosts);
  allocation.slots_are = "one per task";
  return std::optional<Allocation>(std::move(allocation));
}

}  // namespace hvd
