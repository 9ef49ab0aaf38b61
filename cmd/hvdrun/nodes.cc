// The same command on every node: node 0 runs the job, the others follow it until its end.
#include <random>
#include <utility>

#include "cmd/hvdrun/verbs.h"
#include "discovery/allocations/node_group.h"
#include "launcher/channels/nodes/follow.h"
#include "launcher/channels/nodes/node_door.h"
#include "launcher/output/output.h"
#include "runtime/base/text/format.h"
#include "runtime/net/mesh/mesh_handshake.h"

namespace hvd {
namespace {

constexpr double kStartSeconds = 30;  // the default of --start-timeout, too short for pods
constexpr Duration kPatience = std::chrono::minutes(10);
// Time to wait for nodes that are dialing now.
constexpr Duration kEndLimit = std::chrono::seconds(5);

Duration PatienceOf(const Settings& settings) {
  if (settings.start_timeout_seconds == kStartSeconds) return kPatience;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(settings.start_timeout_seconds));
}

// The exit code of the job; nothing: this machine leads, because the leader's address is its own.
std::optional<int> Follow(const NodeGroup& group, const std::string& key, Duration patience) {
  const std::string leader = Format("{}, port {}", group.leader, group.port);
  FollowOptions options{group.leader, group.port, key, 0, "", {}, patience, {}};
  options.say = [](const std::string& sentence) {
    WriteAll(STDERR_FILENO, "hvdrun: " + sentence + "\n");
  };
  if (group.rank) {
    options.node = *group.rank;
    options.name = Format("node {}", *group.rank);
    PrintNotes({Format("{} of {} follows node 0 at {}", options.name, group.nodes, leader)});
    return FollowNode(std::move(options));
  }
  options.node = NodeIdOf(std::random_device{}());
  options.name = "this node";
  options.leads = [&group, leader, announced = false]() mutable {
    const bool leads = IsThisHost(group.leader);
    if (leads) {
      PrintNotes(
          {Format("this machine is node 0 of {}: {} is its own address", group.nodes, leader)});
    } else if (!std::exchange(announced, true)) {
      PrintNotes({Format("one of {} nodes follows node 0 at {}, which gives it its rank",
                         group.nodes, leader)});
    }
    return leads;
  };
  return FollowNode(std::move(options));
}

}  // namespace

Result<NodePart> JoinNodes(const Settings& settings) {
  NodePart part;
  if (settings.launcher != RemoteLauncher::kNodes || settings.dry_run || settings.print_env)
    return part;
  const AllocationFacts facts = AllocationFactsHere(settings);
  const Result<std::optional<NodeGroup>> group = FindNodeGroup(facts);
  if (!group.ok()) return group.status();
  if (!*group || (*group)->nodes == 1) return part;
  if (settings.detach)
    return InvalidArgument("--detach: the nodes of " + (*group)->said_by +
                           " end with the job, so it runs in the foreground; leave --detach out");
  const Result<std::string> text = NodeKeyText(facts, **group);
  if (!text.ok()) return text.status();
  const std::string key = HkdfSha256("hvdrun", *text, "the key of a group of nodes");
  if ((*group)->rank != 0u) part.code = Follow(**group, key, PatienceOf(settings));
  if (part.code) return part;
  part.waiting = std::make_shared<WaitingNodes>();
  part.waiting->key = key;
  part.waiting->port = (*group)->port;
  part.waiting->names = (*group)->names;
  return part;
}

int EndWithNodes(const NodePart& part, int code) {
  if (part.waiting) EndNodes(*part.waiting, code, kEndLimit);
  return code;
}

}  // namespace hvd
