// TreeMember: an agent's part in the tree (agent_tree.h). Batches its own messages and those of the
// hosts below it on their way up, and forwards messages from above to the hosts concerned.
//
// An agent that loses its parent sends directly to the driver, for itself and the hosts below it,
// and all of them repeat which of their workers started and ended, since that may have been lost
// with the parent. A connection closed for a protocol violation counts as lost, and the user gets
// the reason.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_OVERLAY_TREE_TREE_MEMBER_H_
#define HVD_LAUNCHER_OVERLAY_TREE_TREE_MEMBER_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "launcher/overlay/tree/agent_tree.h"
#include "launcher/overlay/tree/tree_links.h"

namespace hvd {

class TreeMember final : private TreeLinksObserver {
 public:
  struct Owner {
    std::function<void(const ToDriver&)> tell_driver;  // over the agent's own stream
    std::function<void(ToAgent)> handle;               // a message for this host
  };

  TreeMember(asio::io_context& io, Owner owner);

  // Listens for children, if there will be any. Returns the record for ConnectivityProbed; empty:
  // no children, or no socket could be opened, which the children will notice.
  std::string Listen(const ProbeConnectivity& question);
  // Joins the tree, if there is one and this host has a parent or children.
  void Join(const StartJob& start);

  // False: not sent; send it to the driver directly.
  bool Up(const ToDriver& message);
  // From the driver's own stream.
  void Down(const TreeDown& message);
  void Tick(TimePoint now);
  void Close();

 private:
  Status OnFromAbove(const TreeDown& message) override;
  Status OnFromBelow(uint32_t child, TreeUp batch) override;
  void OnAboveLost(const Status& why) override;
  void OnBelowLost(uint32_t child, const Status& why) override;
  void WarnIfRefused(uint32_t host, const Status& why);
  void Deliver();
  void GatherUp();
  void SendUp();
  std::string NameOf(uint32_t host) const;

  asio::io_context& io_;
  const Owner owner_;
  asio::steady_timer gathering_;
  bool gathers_ = false;
  bool straight_ = false;  // this host sends to the driver directly
  std::map<uint32_t, std::string> names_;
  MeshListener listener_;
  std::unique_ptr<TreeNode> node_;  // none: no tree
  std::unique_ptr<TreeLinks> links_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_TREE_TREE_MEMBER_H_
