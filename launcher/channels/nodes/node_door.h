// NodeDoor: node 0's end of the connections from other nodes (README): waiting connections, and the
// channels that use them.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_CHANNELS_NODES_NODE_DOOR_H_
#define HVD_LAUNCHER_CHANNELS_NODES_NODE_DOOR_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/channels/host_channel.h"
#include "launcher/channels/nodes/node_numbers.h"
#include "launcher/overlay/dial/connector_loop.h"
#include "launcher/overlay/dial/sealed_pump.h"
#include "runtime/base/clock.h"

namespace hvd {

// Connections of nodes that wait for an order; they outlive the io_context of a job, so that the
// nodes can be informed of its end.
struct WaitingNodes {
  std::string key;  // of the group
  uint16_t port = 0;
  std::vector<std::string> names;         // of all nodes, including node 0
  std::map<uint32_t, SealedLine> lines;   // by node
  NodeNumbers numbers;                    // of all machines that have dialed
  std::map<uint32_t, SealedLine> spares;  // by id: more of these than are wanted
  std::map<uint32_t, TimePoint> wanted;  // nodes without a line, and since when they are waited for

  // 0: no other node has this name.
  uint32_t NumberOf(const std::string& name) const;
};

// Tells the nodes that the job is over. Waits at most `limit` for nodes that are still dialing.
void EndNodes(WaitingNodes& waiting, int code, Duration limit);

class NodeDoor final : public std::enable_shared_from_this<NodeDoor>, private MeshConnectorOwner {
 public:
  // `clock` and `io` outlive this object.
  NodeDoor(asio::io_context& io, const Clock& clock, std::shared_ptr<WaitingNodes> waiting);
  ~NodeDoor() override;

  // Starts to listen. Call once.
  Status Listen();
  // What a command is for: a machine that nobody needed until now may begin as the node, but knows
  // nothing about an agent that ran there before.
  enum class Purpose { kBegin, kAskAgent };
  // A channel that runs `command` in a shell on the node of this name.
  std::unique_ptr<HostChannel> Reach(const std::string& name, std::string command, Purpose purpose);

 private:
  class Channel;

  void Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) override;
  void Unreachable(uint32_t, Status) override {}  // never dials
  // The line of a node that waits for an order; nothing: none does.
  std::optional<SealedLine> LineOfNode(uint32_t node);
  std::optional<SealedLine> SpareFor(WantedNode wanted);
  // The number of a machine that dials. Nothing: it is not needed, or its number is another's.
  std::optional<uint32_t> NumberFor(uint32_t peer);

  asio::io_context& io_;
  const Clock& clock_;
  const std::shared_ptr<WaitingNodes> waiting_;
  // Channels waiting for a connection; owned by the callers of Reach.
  std::map<uint32_t, Channel*> takers_;
  std::unique_ptr<ConnectorLoop> loop_;
  Status listening_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_NODES_NODE_DOOR_H_
