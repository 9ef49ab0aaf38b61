#include "discovery/allocations/csm_allocation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "configs/message_text.h"
#include "configs/yaml_file.h"
#include "discovery/allocations/machine_list.h"
#include "discovery/host_item.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

using Answer = std::map<std::string, YamlValue>;

constexpr const char* kAllocation = "CSM's csm_allocation_query";
constexpr const char* kNode = "CSM's csm_node_attributes_query";

Result<Answer> ReadAnswer(const char* program, const std::string& text) {
  Result<Answer> answer = ParseYamlWithLists(text, "answer");
  if (answer.ok()) return answer;
  return InvalidArgument(std::string(program) + " says nothing that can be read (" +
                         answer.status().message() + ")");
}

// A number that is not there is 0.
Result<uint32_t> NumberAt(const char* program, const Answer& answer, const std::string& key) {
  const auto found = answer.find(key);
  if (found == answer.end()) return 0U;
  const std::string& text = found->second.text;
  const auto value = ParseWhole<uint32_t>(text);
  if (value && *value <= kMaxSlots) return *value;
  return InvalidArgument(std::string(program) + " says '" + Printable(text) + "' for " + key +
                         ", which is no count");
}

}  // namespace

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
  Result<std::vector<HostSpec>> hosts = list.Take();
  if (!hosts.ok()) return hosts.status();
  return CsmAllocation{std::move(*hosts), gpus > 0 ? "one per GPU" : "one per core"};
}

}  // namespace hvd
