// TreeMember: an agent's part in the tree (agent_tree.h). Its messages and those of the hosts below
// it are gathered for a moment and go up together; a message from above goes on to those whom it
// concerns.
//
// An agent that loses its parent speaks straight to the driver, for itself and for those below it,
// and all of them say again which of their workers started and ended: that may have been lost with
// the parent. A connection that is closed because of what came over it is lost in the same way, and
// the user hears why.
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

  // Listens for those below, if there will be any. The record for ConnectivityProbed; empty: there
  // is none, or no socket was to be had, which they will notice.
  std::string Listen(const ProbeConnectivity& question);
  // Takes its place, if there is a tree and this host has anybody above or below it.
  void Join(const StartJob& start);

  // False: there is no tree for it, say it straight.
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
  bool straight_ = false;  // the driver is above this host, or has to be
  std::map<uint32_t, std::string> names_;
  MeshListener listener_;
  std::unique_ptr<TreeNode> node_;  // none: no tree
  std::unique_ptr<TreeLinks> links_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_TREE_TREE_MEMBER_H_
