#include "discovery/allocations/lsf_allocation.h"

#include <string>
#include <utility>

#include "configs/message_text.h"
#include "discovery/allocations/csm_allocation.h"
#include "discovery/allocations/machine_list.h"

namespace hvd {
namespace {

constexpr const char* kCsmAllocationQuery = "/opt/ibm/csm/bin/csm_allocation_query";
constexpr const char* kCsmNodeAttributesQuery = "/opt/ibm/csm/bin/csm_node_attributes_query";

using Hosts = Result<std::vector<HostSpec>>;

// One line for each slot.
Hosts HostsOfFile(const AllocationFacts& facts, const char* variable, const std::string& path) {
  const std::string source = "LSF's file " + Printable(path, kMaxShownPath) + " (" + variable + ")";
  const Result<std::string> text = facts.read_file(path);
  if (!text.ok()) return InvalidArgument(source + " " + text.status().message());
  MachineList list(source);
  HVD_RETURN_IF_ERROR(list.AddLines(*text));
  return list.Take();
}

Hosts HostsOfList(const char* variable, const std::string& text, bool pairs) {
  MachineList list(std::string("LSF's variable ") + variable);
  const Status status = pairs ? list.AddPairs(text) : list.AddWords(text);
  if (!status.ok()) return status;
  return list.Take();
}

// Nothing: LSF names no hosts. LSB_HOSTS is the last resort, because LSF cuts it in large jobs.
std::optional<Hosts> NamedHosts(const AllocationFacts& facts) {
  for (const char* variable : {"LSB_DJOB_HOSTFILE", "LSB_DJOB_RANKFILE"}) {
    if (const auto path = facts.Text(variable)) return HostsOfFile(facts, variable, *path);
  }
  if (const auto list = facts.Text("LSB_MCPU_HOSTS"))
    return HostsOfList("LSB_MCPU_HOSTS", *list, true);
  if (const auto list = facts.Text("LSB_HOSTS")) return HostsOfList("LSB_HOSTS", *list, false);
  return std::nullopt;
}

// On machines that CSM runs, and whose programs are not here, the first host is the one on which
// the job's script runs, with a slot on which nothing is to be computed.
void LeaveOutLaunchNode(const AllocationFacts& facts, std::vector<HostSpec>& hosts) {
  if (!facts.Text("CSM_ALLOCATION_ID") || hosts.size() < 2 || hosts.front().slots != 1U) return;
  hosts.erase(hosts.begin());
}

HostAccess AccessOf(const AllocationFacts& facts) {
  HostAccess access;
  if (facts.has_program("blaunch")) access.launcher = RemoteLauncher::kBlaunch;
  return access;
}

// CSM knows its compute nodes, and their resources, by its own programs.
Result<std::optional<CsmAllocation>> AskCsm(const AllocationFacts& facts) {
  const auto id = facts.Text("CSM_ALLOCATION_ID");
  const std::string query = facts.Text("CSM_ALLOCATION_QUERY").value_or(kCsmAllocationQuery);
  if (!id || !facts.ask || !facts.has_program(query)) return std::optional<CsmAllocation>();
  const auto ask = [&](const std::vector<std::string>& command) -> Result<std::string> {
    Result<std::string> said = facts.ask(command);
    if (said.ok()) return said;
    return InvalidArgument("CSM's " + Printable(command[0], kMaxShownPath) + " " +
                           said.status().message());
  };
  const Result<std::string> allocation = ask({query, "-a", *id});
  if (!allocation.ok()) return allocation.status();
  Result<CsmNodes> nodes = ReadCsmNodes(*allocation);
  if (!nodes.ok()) return nodes.status();
  const std::string of_node =
      facts.Text("CSM_NODE_ATTRIBUTES_QUERY").value_or(kCsmNodeAttributesQuery);
  const Result<std::string> node = ask({of_node, "-n", nodes->names.front()});
  if (!node.ok()) return node.status();
  Result<CsmAllocation> whole = ReadCsmAllocation(std::move(*nodes), *node);
  if (!whole.ok()) return whole.status();
  return std::optional<CsmAllocation>(std::move(*whole));
}

}  // namespace

Result<std::optional<Allocation>> FindLsfAllocation(const AllocationFacts& facts) {
  const std::optional<std::string> id = facts.Text("LSB_JOBID");
  if (!id) return std::optional<Allocation>();
  Allocation allocation;
  allocation.name = "LSF job " + *id;
  allocation.slots_are = "one per task";
  if (const auto index = facts.Text("LSB_JOBINDEX"); index && *index != "0")
    allocation.name += "[" + *index + "]";
  Result<std::optional<CsmAllocation>> csm = AskCsm(facts);
  if (!csm.ok()) return csm.status();
  if (*csm) {
    allocation.hosts = std::move((*csm)->hosts);
    allocation.slots_are = (*csm)->slots_are;
    allocation.access = AccessOf(facts);
    return std::optional<Allocation>(std::move(allocation));
  }
  std::optional<Hosts> hosts = NamedHosts(facts);
  if (!hosts) {
    allocation.slots = facts.default_slots();
    allocation.slots_are = "one per GPU, else per core";
    return std::optional<Allocation>(std::move(allocation));
  }
  if (!hosts->ok()) return hosts->status();
  allocation.hosts = std::move(**hosts);
  LeaveOutLaunchNode(facts, allocation.hosts);
  allocation.access = AccessOf(facts);
  return std::optional<Allocation>(std::move(allocation));
}

}  // namespace hvd
