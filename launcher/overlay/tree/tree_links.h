// TreeLinks: an agent's connections in the tree (agent_tree.h): one to its parent, unless that is
// the driver, and one to each child. They are established like mesh connections and authenticated
// by the job's key; each has a Stream, which accepts messages at once and sends them when
// connected. Frames go in sealed records (sealed_records.h), so none can be read, changed, repeated
// or dropped on the way.
//
// A connection with invalid data, or with a message that its sender may not send, is closed and
// treated as lost.
//
// One thread, that of the io_context. The observer is called from it, and never from inside a call.
#ifndef HVD_LAUNCHER_OVERLAY_TREE_TREE_LINKS_H_
#define HVD_LAUNCHER_OVERLAY_TREE_TREE_LINKS_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/overlay/dial/connector_loop.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/mesh/mesh_connector.h"

namespace hvd {

class TreeLinksObserver {
 public:
  virtual ~TreeLinksObserver() = default;
  // Not ok: the sender may not send this; its connection is closed.
  virtual Status OnFromAbove(const TreeDown& message) = 0;
  virtual Status OnFromBelow(uint32_t child, TreeUp batch) = 0;
  // The parent is unreachable or lost. Called once; nothing can be sent up afterwards.
  // kInvalidArgument: a record was tampered with, or is not a message of a parent.
  virtual void OnAboveLost(const Status& why) = 0;
  // A child is lost, or its connection was closed; `why` as above.
  virtual void OnBelowLost(uint32_t child, const Status& why) = 0;
};

struct TreeLinksOptions {
  uint32_t host = 0;  // of this agent
  std::string job_key;
  std::function<std::string(uint32_t)> name;  // of a host, for messages
};

class TreeLinks final : private MeshConnectorOwner {
 public:
  // `listener`: for the children; empty if there are none. `observer` outlives this object.
  TreeLinks(asio::io_context& io, TreeLinksObserver& observer, TreeLinksOptions options,
            MeshListener listener);
  ~TreeLinks() override;

  // Sets the hosts that will connect.
  void Expect(const std::vector<uint32_t>& children);
  // Retries up to the mesh's connection limit, a few seconds.
  void Dial(uint32_t parent, std::vector<MeshAddress> addresses);

  void SendUp(const TreeUp& batch);
  // Dropped if the child is lost: the driver then sends to it directly.
  void SendDown(uint32_t child, const TreeDown& message);

  // Sends heartbeats, which acknowledge received messages; call regularly.
  void Tick(TimePoint now);
  void Close();

 private:
  struct Link;

  void Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) override;
  void Unreachable(uint32_t peer, Status why) override;

  void Receive(uint32_t peer, std::string_view bytes);
  Status Handle(uint32_t peer, const std::string& message);
  void Flush(Link& link);
  void Lose(uint32_t peer, const Status& why);

  asio::io_context& io_;
  TreeLinksObserver& observer_;
  const TreeLinksOptions options_;
  const SteadyClock clock_;
  ConnectorLoop connector_;
  std::optional<uint32_t> parent_;
  std::map<uint32_t, std::unique_ptr<Link>> links_;
};

// Reserved, so that no connection of a world is mistaken for one of the tree.
inline constexpr uint64_t kTreeGeneration = ~uint64_t{0};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_TREE_TREE_LINKS_H_
