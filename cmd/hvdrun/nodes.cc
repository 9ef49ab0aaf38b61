// The same command on every node: node 0 runs the job, the others follow it until its end.
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
  if ((*group)->rank == 0) {
    part.waiting = std::make_shared<WaitingNodes>();
    part.waiting->key = key;
    part.waiting->port = (*group)->port;
    part.waiting->names = (*group)->names;
    return part;
  }
  PrintNotes({Format("node {} of {} follows node 0 at {}, port {}", (*group)->rank, (*group)->nodes,
                     (*group)->leader, (*group)->port)});
  part.code = FollowNode(
      {(*group)->leader, (*group)->port, key, (*group)->rank, PatienceOf(settings),
       [](const std::string& sentence) { WriteAll(STDERR_FILENO, "hvdrun: " + sentence + "\n"); }});
  return part;
}

int EndWithNodes(const NodePart& part, int code) {
  if (part.waiting) EndNodes(*part.waiting, code, kEndLimit);
  return code;
}

}  // namespace hvd
