#include "discovery/allocations/node_group.h"

#include <utility>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr uint32_t kMostNodes = 100'000;
constexpr size_t kLeastKey = 16;  // bytes

struct Dialect {
  const char *nodes, *rank, *leader, *port, *slots;
  const char* endpoint = nullptr;  // HOST:PORT, where there is no leader
};
constexpr Dialect kOptions = {"--nnodes", "--node-rank", "--master-addr", "--master-port",
                              "--nproc-per-node"};
constexpr const char* kAllProcesses = "-np";
constexpr Dialect kDialects[] = {
    kOptions,
    {"HVD_NODES", "HVD_NODE_RANK", "HVD_LEADER", nullptr, "HVD_NODE_SLOTS"},
    {"PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NPROC_PER_NODE",
     "PET_RDZV_ENDPOINT"},
};

// The ranks per node, from the total number.
std::optional<uint32_t> ShareOf(const AllocationFacts& facts, uint32_t nodes) {
  const auto all = ParseWhole<uint32_t>(facts.Text(kAllProcesses).value_or(""));
  if (!all) return std::nullopt;
  return (*all + nodes - 1) / nodes;
}

// The variable that says which node this is; the first known one if none does.
const char* RankVariable(const AllocationFacts& facts, const Dialect& dialect) {
  for (const char* variable : {dialect.rank, "JOB_COMPLETION_INDEX", "SLURM_NODEID"}) {
    if (facts.Text(variable)) return variable;
  }
  return dialect.rank;
}

Status Wrong(const char* variable, const std::string& value, const std::string& is_not) {
  return InvalidArgument(std::string(variable) + "=" + Printable(value, kMaxShownPath) + " " +
                         is_not);
}

// "4", or "1:4".
Status ReadNodes(const char* variable, const std::string& text, NodeGroup& group) {
  const size_t colon = text.find(':');
  const auto least = ParseWhole<uint32_t>(std::string_view(text).substr(0, colon));
  const auto most = colon == std::string::npos
                        ? least
                        : ParseWhole<uint32_t>(std::string_view(text).substr(colon + 1));
  if (!least || !most || *least == 0 || *least > *most || *most > kMostNodes)
    return Wrong(variable, text, "is not a number of nodes");
  group.nodes = *most;
  group.least = *least;
  group.said_by = std::string(variable) + "=" + text;
  return Status::Ok();
}

// "host", "host:29400", "[::1]:29400".
Status ReadLeader(const char* variable, std::string text, NodeGroup& group) {
  const std::string whole = text;
  const size_t colon = text.rfind(':');
  const bool bare_ipv6 = text.find(':') != colon && text[0] != '[';
  if (colon != std::string::npos && !bare_ipv6 && text.back() != ']') {
    const auto port = ParseWhole<uint16_t>(text.substr(colon + 1));
    if (!port || *port == 0) return Wrong(variable, whole, "names no port behind its colon");
    group.port = *port;
    text.resize(colon);
  }
  if (text.size() > 2 && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  if (text.empty()) return Wrong(variable, whole, "names no host");
  group.leader = std::move(text);
  return Status::Ok();
}

// If "job-node-0-0.job" leads, "job-node-0-3.job" is node 3; other names reveal nothing.
std::string NameOf(const std::string& leader, uint32_t rank) {
  const size_t dot = std::min(leader.find('.'), leader.size());
  if (dot >= 2 && leader.substr(dot - 2, 2) == "-0")
    return leader.substr(0, dot - 1) + std::to_string(rank) + leader.substr(dot);
  return Format("node-{}", rank);
}

Status ReadGroup(const AllocationFacts& facts, const Dialect& dialect, NodeGroup& group) {
  HVD_RETURN_IF_ERROR(ReadNodes(dialect.nodes, *facts.Text(dialect.nodes), group));
  const std::optional<std::string> slots = facts.Text(dialect.slots);
  group.slots = slots ? ParseWhole<uint32_t>(*slots).value_or(0) : 0;
  if (group.slots == 0) group.slots = ShareOf(facts, group.nodes).value_or(0);
  if (group.slots == 0) group.slots = facts.default_slots();
  if (group.nodes == 1) return Status::Ok();
  const char* rank_of = RankVariable(facts, dialect);
  if (const std::optional<std::string> rank = facts.Text(rank_of)) {
    group.rank = ParseWhole<uint32_t>(*rank);
    if (!group.rank || *group.rank >= group.nodes)
      return Wrong(rank_of, *rank, Format("is not one of {} nodes", group.nodes));
  }
  const bool by_endpoint = !facts.Text(dialect.leader) && dialect.endpoint != nullptr;
  const char* leader_of = by_endpoint ? dialect.endpoint : dialect.leader;
  const std::optional<std::string> leader = facts.Text(leader_of);
  if (!leader) {
    return InvalidArgument(group.said_by + " is set and " + dialect.leader +
                           " is not, so node 0 cannot be found; say on each node which one leads, "
                           "or start the command once with all hosts: -H a:4,b:4");
  }
  HVD_RETURN_IF_ERROR(ReadLeader(leader_of, *leader, group));
  if (dialect.port != nullptr && facts.Text(dialect.port)) {
    const std::string port = *facts.Text(dialect.port);
    const auto listens = ParseWhole<uint16_t>(port);
    if (!listens || *listens == 0) return Wrong(dialect.port, port, "is no port");
    group.port = *listens;
  }
  // This machine always has this name, too.
  group.names.push_back("localhost");
  for (uint32_t node = 1; node < group.nodes; ++node)
    group.names.push_back(NameOf(group.leader, node));
  return Status::Ok();
}

}  // namespace

std::map<std::string, std::string> OptionFacts(const Settings& settings) {
  std::map<std::string, std::string> facts;
  if (!StartsOnEachNode(settings)) return facts;
  facts[kOptions.nodes] = settings.nnodes;
  if (settings.node_rank >= 0) facts[kOptions.rank] = std::to_string(settings.node_rank);
  facts[kOptions.leader] = settings.master_addr;
  if (settings.master_port > 0) facts[kOptions.port] = std::to_string(settings.master_port);
  if (settings.slots_per_host > 0) facts[kOptions.slots] = std::to_string(settings.slots_per_host);
  if (settings.num_proc > 0) facts[kAllProcesses] = std::to_string(settings.num_proc);
  return facts;
}

bool NamesNodes(const AllocationFacts& facts) { return facts.Text(kOptions.nodes).has_value(); }

Result<std::optional<NodeGroup>> FindNodeGroup(const AllocationFacts& facts) {
  for (const Dialect& dialect : kDialects) {
    if (!facts.Text(dialect.nodes)) continue;
    NodeGroup group;
    HVD_RETURN_IF_ERROR(ReadGroup(facts, dialect, group));
    return std::optional<NodeGroup>(std::move(group));
  }
  return std::optional<NodeGroup>();
}

Result<std::optional<Allocation>> FindNodeAllocation(const AllocationFacts& facts) {
  Result<std::optional<NodeGroup>> group = FindNodeGroup(facts);
  if (!group.ok()) return group.status();
  if (!*group) return std::optional<Allocation>();
  Allocation allocation;
  allocation.name = (*group)->said_by;
  allocation.slots_are = "as each node has them";
  allocation.slots = (*group)->slots;
  if ((*group)->nodes == 1) return std::optional<Allocation>(std::move(allocation));
  for (const std::string& name : (*group)->names) {
    HostSpec host;
    host.name = name;
    host.slots = (*group)->slots;
    allocation.hosts.push_back(std::move(host));
  }
  if ((*group)->least < (*group)->nodes) allocation.least_hosts = (*group)->least;
  allocation.access.launcher = RemoteLauncher::kNodes;
  return std::optional<Allocation>(std::move(allocation));
}

Result<std::string> NodeKeyText(const AllocationFacts& facts, const NodeGroup& group) {
  const std::string advice =
      "; all nodes need the same file with a secret, and HVD_JOB_KEY_FILE names it (without one "
      "nothing listens): `(umask 077; openssl rand -hex 32 > ~/.hvd-job-key)` makes it where they "
      "share the home folder, `openssl rand -hex 32 | kubectl create secret generic hvd-job-key "
      "--from-file=key=/dev/stdin` for a volume of pods";
  const std::optional<std::string> path = facts.Text(kJobKeyFile);
  if (!path)
    return InvalidArgument(group.said_by + " says that other nodes belong to this job, and " +
                           kJobKeyFile + " is not set" + advice);
  const std::string shown = std::string(kJobKeyFile) + "=" + Printable(*path, kMaxShownPath);
  Result<std::string> text = facts.read_file(*path);
  if (!text.ok()) return InvalidArgument(shown + " " + text.status().message() + advice);
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->size() < kLeastKey)
    return InvalidArgument(
        Format("{} has {} bytes, fewer than {}{}", shown, text->size(), kLeastKey, advice));
  return text;
}

}  // namespace hvd
