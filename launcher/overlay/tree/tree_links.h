// TreeLinks: an agent's connections in the tree (agent_tree.h): one to its parent, unless that is
// the driver, and one to each child. They are made as those of the mesh are, and proven by the
// job's key; on each there is a Stream, which takes messages from the first moment on and sends
// them once it is connected. Its frames go in sealed records (sealed_records.h): nobody on the way
// reads, changes, repeats or leaves out any.
//
// A connection on which anything else comes, or a message that its sender may not send, is closed
// as a lost one is.
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
  // Not ok: it may not say this, and its connection is closed.
  virtual Status OnFromAbove(const TreeDown& message) = 0;
  virtual Status OnFromBelow(uint32_t child, TreeUp batch) = 0;
  // The parent cannot be reached, or not any more. Once; nothing can be sent up afterwards.
  // kInvalidArgument: a record from there was changed on the way, or is nothing that a parent says.
  virtual void OnAboveLost(const Status& why) = 0;
  // A child is gone, or its connection was closed; `why` as above.
  virtual void OnBelowLost(uint32_t child, const Status& why) = 0;
};

struct TreeLinksOptions {
  uint32_t host = 0;  // the number of this one
  std::string job_key;
  std::function<std::string(uint32_t)> name;  // of a host, for messages
};

class TreeLinks final : private MeshConnectorOwner {
 public:
  // `listener`: where children come in; empty for a host without any. `observer` outlives this
  // object.
  TreeLinks(asio::io_context& io, TreeLinksObserver& observer, TreeLinksOptions options,
            MeshListener listener);
  ~TreeLinks() override;

  // Whose connections will come.
  void Expect(const std::vector<uint32_t>& children);
  // Tries until the limit of the mesh's connections, a few seconds.
  void Dial(uint32_t parent, std::vector<MeshAddress> addresses);

  void SendUp(const TreeUp& batch);
  // Goes nowhere when the child is lost: the driver tells it by itself then.
  void SendDown(uint32_t child, const TreeDown& message);

  // Heartbeats carry what was received; call now and then.
  void Tick(TimePoint now);
  void Close();

 private:
  struct Link;

  void Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) override;
  void Unreachable(uint32_t peer, Status why) override;

  void Receive(uint32_t peer, std::string_view bytes);
  Status Take(uint32_t peer, const std::string& message);
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

// The tree's own, so that no connection of a world passes for one.
inline constexpr uint64_t kTreeGeneration = ~uint64_t{0};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_TREE_TREE_LINKS_H_
