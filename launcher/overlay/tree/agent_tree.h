// The tree in which the agents of a large job pass messages on, so that neither the driver nor any
// agent handles more than a few of them whatever the number of hosts. The driver is the root. A
// node with hosts first..end-1 below it splits them into at most `radix` contiguous blocks; the
// first host of a block is the child and has the rest of the block below it. Neighbours communicate
// most, so most lookups are answered inside a block.
//
// Pure: the messages to be sent, and where, are returned in order.
#ifndef HVD_LAUNCHER_OVERLAY_TREE_AGENT_TREE_H_
#define HVD_LAUNCHER_OVERLAY_TREE_AGENT_TREE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/wire/kv_table.h"
#include "launcher/wire/message_rights.h"
#include "launcher/wire/messages.h"

namespace hvd {

// Maximum number of children: the driver's traffic at the start of a generation grows with it,
// while the depth hardly shrinks. The README has the figures.
inline constexpr uint32_t kWidestTree = 4;

// `radix` 0: one block per host, i.e. no tree. In order; sizes differ by at most one.
std::vector<TreeBlock> TreeBlocks(uint32_t first, uint32_t end, uint32_t radix);

struct TreePlace {
  std::optional<uint32_t> parent;  // none: the driver
  TreeBlock block;                 // this host and its descendants
  std::vector<TreeBlock> below;    // of its children
};
// `host` < `hosts`.
TreePlace PlaceInTree(uint32_t host, uint32_t hosts, uint32_t radix);

// Parent and children, without the driver.
std::vector<uint32_t> TreeNeighbours(const TreePlace& place);

// Messages queued for the children, in order for each child.
class TreeOutbox {
 public:
  explicit TreeOutbox(std::vector<TreeBlock> blocks) : blocks_(std::move(blocks)) {}

  // Queues for each child the part of the entry that concerns its block.
  void Add(const TreeDownEntry& entry);
  // Removes and returns the queued messages with their children.
  std::vector<std::pair<uint32_t, TreeDown>> PopAll();

 private:
  std::vector<TreeBlock> blocks_;
  std::map<uint32_t, TreeDown> waiting_;
};

// Calls `joined` for every rank of the message that is below `ranks`.
template <typename Joined>
void ForEachRank(const RanksJoined& message, uint32_t ranks, Joined joined) {
  for (const RankSpan& span : message.spans) {
    for (uint32_t rank = span.first; rank < ranks && rank - span.first < span.count; ++rank)
      joined(RankJoined{rank});
  }
}

// One agent's routing of messages up and down. Answers directory lookups that it knows, and asks
// for each key once. A batch or message with any content that its sender may not send is refused as
// a whole.
class TreeNode {
 public:
  TreeNode(uint32_t host, TreePlace place, HostOfRank host_of_rank);

  const TreePlace& place() const { return place_; }

  // A message from this host to the driver.
  void FromSelf(const ToDriver& message);
  // A batch from a child. kInvalidArgument, with nothing forwarded: it has a message that does not
  // go up the tree, is for hosts that are not below the child, names ranks that are not theirs, or
  // too many keys.
  Status FromBelow(uint32_t child, TreeUp batch);
  // From the parent or the driver. kInvalidArgument, with nothing forwarded: it has a message that
  // does not go down the tree, or is for hosts outside this block.
  Status FromAbove(const TreeDown& message);

  // Each removes and returns the messages queued since the last call.
  bool has_up() const { return !up_.entries.empty() || !joined_.empty(); }
  TreeUp PopUpward();
  std::vector<std::pair<uint32_t, TreeDown>> PopDownward() { return down_.PopAll(); }
  std::vector<ToAgent> PopOwn();  // for this host

 private:
  void Up(uint32_t host, std::string bytes);
  void Joined(uint32_t first, uint32_t count);
  void FlushJoined();
  // True: the message was handled here and need not go further.
  bool Settle(uint32_t host, const ToDriver& message);
  Status AdmitKey(const TreeBlock& child, const ToDriver& message);
  void Down(const TreeDownEntry& entry, ToAgent inner);
  void Give(uint32_t host, const KeyValue& entry);

  const uint32_t host_;
  const TreePlace place_;
  const HostOfRank host_of_rank_;
  KvTable directory_;  // readers are hosts
  TreeUp up_;
  std::map<uint32_t, uint32_t>
      joined_;  // ranks that asked for a generation since the last call, as first -> count
  TreeOutbox down_;
  std::vector<ToAgent> own_;
};

// The driver's end of the tree: which child to send to for which host.
class TreeRoot {
 public:
  // With at most `radix` hosts there is no tree: the driver sends to each. With more, it has
  // `radix` children per node, but at most kWidestTree.
  TreeRoot(uint32_t hosts, uint32_t radix, HostOfRank host_of_rank);

  bool flat() const { return width_ == 0; }
  uint32_t width() const { return width_; }  // 0: flat
  TreePlace PlaceOf(uint32_t host) const { return PlaceInTree(host, hosts_, width_); }
  // Queues a message for all hosts, or for one, until PopDownward.
  void ToAll(const ToAgent& message) { down_.Add({0, hosts_, EncodeToAgent(message)}); }
  void ToOne(uint32_t host, const ToAgent& message) {
    down_.Add({host, host + 1, EncodeToAgent(message)});
  }
  std::vector<std::pair<uint32_t, TreeDown>> PopDownward() { return down_.PopAll(); }

  // `host` sends directly from now on; false: it did already.
  bool Cut(uint32_t host);
  const HostOfRank& host_of_rank() const { return host_of_rank_; }
  // Decodes a batch. kInvalidArgument if `host` may not send for a host in it, or a message does
  // not go up the tree.
  Result<std::vector<std::pair<uint32_t, ToDriver>>> Open(uint32_t host, const TreeUp& batch) const;

 private:
  const uint32_t hosts_, width_;
  const HostOfRank host_of_rank_;
  TreeOutbox down_;
  std::vector<uint32_t> cut_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_TREE_AGENT_TREE_H_
