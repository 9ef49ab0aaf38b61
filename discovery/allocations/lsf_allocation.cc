#include "discovery/allocations/lsf_allocation.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/message_text.h"
#include "configs/yaml_file.h"
#include "discovery/allocations/machine_list.h"
#include "discovery/host_item.h"
#include "discovery/host_spec.h"
#include "runtime/base/status.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// IBM CSM's programs print YAML about an allocation: its compute nodes, and the resources of the
// first one, assumed equal on all.
struct CsmNodes {
  std::vector<std::string> names;  // sorted; at least one
  uint32_t isolated_cores = 0;     // per socket; reserved for the system
};

struct CsmAllocation {
  std::vector<HostSpec> hosts;
  std::string_view slots_are;  // "one per GPU"
};

using Answer = std::map<std::string, YamlValue>;

constexpr const char* kAllocation = "CSM's csm_allocation_query";
constexpr const char* kNode = "CSM's csm_node_attributes_query";

Result<Answer> ReadAnswer(const char* program, const std::string& text) {
  Result<Answer> answer = ParseYamlWithLists(text, "answer");
  if (answer.ok()) return answer;
  return InvalidArgument(std::string(program) + " says nothing that can be read (" +
                         answer.status().message() + ")");
}

// A missing number is 0.
Result<uint32_t> NumberAt(const char* program, const Answer& answer, const std::string& key) {
  const auto found = answer.find(key);
  if (found == answer.end()) return 0U;
  const std::string& text = found->second.text;
  const auto value = ParseWhole<uint32_t>(text);
  if (value && *value <= kMaxSlots) return *value;
  return InvalidArgument(std::string(program) + " says '" + Printable(text) + "' for " + key +
                         ", which is no count");
}

// From csm_allocation_query. kInvalidArgument: one sentence.
Result<CsmNodes> ReadCsmNodes(const std::string& text) {
  const Result<Answer> answer = ReadAnswer(kAllocation, text);
  if (!answer.ok()) return answer.status();
  CsmNodes nodes;
  const std::string list = "compute_nodes.";
  MachineList names(kAllocation);
  for (auto at = answer->lower_bound(list); at != answer->end() && at->first.starts_with(list);
       ++at) {
    HVD_RETURN_IF_ERROR(names.Add(at->second.text, 1));
    nodes.names.push_back(at->second.text);
  }
  if (nodes.names.empty())
    return InvalidArgument(std::string(kAllocation) + " names no compute_nodes");
  std::sort(nodes.names.begin(), nodes.names.end());
  const Result<uint32_t> isolated = NumberAt(kAllocation, *answer, "isolated_cores");
  if (!isolated.ok()) return isolated.status();
  nodes.isolated_cores = *isolated;
  return nodes;
}

// `node`: the answer of csm_node_attributes_query about the first. kInvalidArgument: one sentence.
Result<CsmAllocation> ReadCsmAllocation(CsmNodes nodes, const std::string& node) {
  const Result<Answer> answer = ReadAnswer(kNode, node);
  if (!answer.ok()) return answer.status();
  uint64_t counts[3] = {};
  constexpr const char* kKeys[] = {"discovered_gpus", "discovered_cores", "discovered_sockets"};
  for (size_t i = 0; i < 3; ++i) {
    const Result<uint32_t> count = NumberAt(kNode, *answer, std::string("Record_1.") + kKeys[i]);
    if (!count.ok()) return count.status();
    counts[i] = *count;
  }
  const auto [gpus, cores, sockets] = counts;
  const uint64_t isolated = sockets * nodes.isolated_cores;
  const uint64_t slots = gpus > 0 ? gpus : cores - std::min(cores, isolated);
  if (slots == 0)
    return InvalidArgument(std::string(kNode) + " finds neither GPUs nor cores on " +
                           Printable(nodes.names.front()));
  MachineList list(kAllocation);
  for (const std::string& name : nodes.names) {
    if (Status added = list.Add(name, static_cast<uint32_t>(slots)); !added.ok()) return added;
  }
  Result<std::vector<HostSpec>> hosts = list.Finish();
  if (!hosts.ok()) return hosts.status();
  return CsmAllocation{std::move(*hosts), gpus > 0 ? "one per GPU" : "one per core"};
}

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
  return list.Finish();
}

Hosts HostsOfList(const char* variable, const std::string& text, bool pairs) {
  MachineList list(std::string("LSF's variable ") + variable);
  const Status status = pairs ? list.AddPairs(text) : list.AddWords(text);
  if (!status.ok()) return status;
  return list.Finish();
}

// Nothing: LSF names no hosts. LSB_HOSTS is the last resort, because LSF truncates it in large
// jobs.
std::optional<Hosts> NamedHosts(const AllocationFacts& facts) {
  for (const char* variable : {"LSB_DJOB_HOSTFILE", "LSB_DJOB_RANKFILE"}) {
    if (const auto path = facts.Text(variable)) return HostsOfFile(facts, variable, *path);
  }
  if (const auto list = facts.Text("LSB_MCPU_HOSTS"))
    return HostsOfList("LSB_MCPU_HOSTS", *list, true);
  if (const auto list = facts.Text("LSB_HOSTS")) return HostsOfList("LSB_HOSTS", *list, false);
  return std::nullopt;
}

// On machines with CSM whose programs are not available here, the first host runs the job's script
// and has one slot on which nothing is to be computed.
void LeaveOutLaunchNode(const AllocationFacts& facts, std::vector<HostSpec>& hosts) {
  if (!facts.Text("CSM_ALLOCATION_ID") || hosts.size() < 2 || hosts.front().slots != 1U) return;
  hosts.erase(hosts.begin());
}

HostAccess AccessOf(const AllocationFacts& facts) {
  HostAccess access;
  if (facts.has_program("blaunch")) access.launcher = RemoteLauncher::kBlaunch;
  return access;
}

// CSM's own programs report its compute nodes and their resources.
Result<std::optional<CsmAllocation>> AskCsm(const AllocationFacts& facts) {
  const auto id = facts.Text("CSM_ALLOCATION_ID");
  const std::string query = facts.Text("CSM_ALLOCATION_QUERY").value_or(kCsmAllocationQuery);
  if (!id || !facts.ask || !facts.has_program(query)) return std::optional<CsmAllocation>();
  const auto ask = [&](const std::vector<std::string>& command) -> Result<std::string> {
    Result<std::string> answer = facts.ask(command);
    if (answer.ok()) return answer;
    return InvalidArgument("CSM's " + Printable(command[0], kMaxShownPath) + " " +
                           answer.status().message());
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
