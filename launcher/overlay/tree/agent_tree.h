// The tree in which the agents of a large job pass messages on, so that neither the driver nor any
// agent handles more than a few of them whatever the number of hosts. The driver is the root. Who
// has hosts first..end-1 below it cuts them into at most `radix` blocks of neighbours; the first
// host of a block is the child and has the rest of it below itself. Neighbours talk most, so most
// of what hosts ask of each other is answered inside a block.
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

// How many are right below the driver or an agent at most: the traffic of the driver when a
// generation begins grows with it, and the depth hardly shrinks. The README has the figures.
inline constexpr uint32_t kWidestTree = 4;

// `radix` 0: a block per host, which is no tree at all. In order; sizes differ by one at most.
std::vector<TreeBlock> TreeBlocks(uint32_t first, uint32_t end, uint32_t radix);

struct TreePlace {
  std::optional<uint32_t> parent;  // none: the driver
  TreeBlock block;                 // this host and those below it
  std::vector<TreeBlock> below;    // its children's
};
// `host` < `hosts`.
TreePlace PlaceInTree(uint32_t host, uint32_t hosts, uint32_t radix);

// Parent and children, without the driver.
std::vector<uint32_t> TreeNeighbours(const TreePlace& place);

// The messages that wait to be sent to those right below, each child's in order.
class TreeOutbox {
 public:
  explicit TreeOutbox(std::vector<TreeBlock> blocks) : blocks_(std::move(blocks)) {}

  // Each child gets the part of the entry that concerns its block.
  void Add(const TreeDownEntry& entry);
  // The messages gathered since the last call, with the children that they go to.
  std::vector<std::pair<uint32_t, TreeDown>> Take();

 private:
  std::vector<TreeBlock> blocks_;
  std::map<uint32_t, TreeDown> waiting_;
};

// Calls `joined` with every rank below `ranks`; nobody has more.
template <typename Joined>
void ForEachRank(const RanksJoined& message, uint32_t ranks, Joined joined) {
  for (const RankSpan& span : message.spans) {
    for (uint32_t rank = span.first; rank < ranks && rank - span.first < span.count; ++rank)
      joined(RankJoined{rank});
  }
}

// One agent's part in passing messages up and down. It answers for the directory where it knows the
// answer, and asks for each key once. A batch or message with anything in it that its sender may
// not say is refused as a whole.
class TreeNode {
 public:
  TreeNode(uint32_t host, TreePlace place, HostOfRank host_of_rank);

  const TreePlace& place() const { return place_; }

  // A message of this host's own for the driver.
  void FromSelf(const ToDriver& message);
  // A batch from the child whose block it is. kInvalidArgument: it has a message that does not go
  // up the tree, or speaks for hosts that are not below it, of ranks that are not theirs, or of too
  // many keys. Nothing of it was passed on.
  Status FromBelow(uint32_t child, TreeUp batch);
  // From the parent, or from the driver. kInvalidArgument: it has a message that does not go down
  // the tree, or is for hosts that are not in this block. Nothing of it was passed on.
  Status FromAbove(const TreeDown& message);

  // Each gives what has gathered since the last call.
  bool has_up() const { return !up_.entries.empty() || !joined_.empty(); }
  TreeUp TakeUp();
  std::vector<std::pair<uint32_t, TreeDown>> TakeDown() { return down_.Take(); }
  std::vector<ToAgent> TakeOwn();  // for this host itself

 private:
  void Up(uint32_t host, std::string bytes);
  void Joined(uint32_t first, uint32_t count);
  void FlushJoined();
  // A message that can be dealt with here need not go further.
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
      joined_;  // ranks that asked for a generation since the last call: first, count
  TreeOutbox down_;
  std::vector<ToAgent> own_;
};

// The driver's end of it: who is spoken to for whom.
class TreeRoot {
 public:
  // With no more hosts than `radix` there is no tree: everybody is spoken to. With more, it is
  // `radix` wide, but at most kWidestTree.
  TreeRoot(uint32_t hosts, uint32_t radix, HostOfRank host_of_rank);

  bool flat() const { return width_ == 0; }
  uint32_t width() const { return width_; }  // 0: flat
  TreePlace PlaceOf(uint32_t host) const { return PlaceInTree(host, hosts_, width_); }
  // A message for all, and for one; they wait for TakeDown.
  void ToAll(const ToAgent& message) { down_.Add({0, hosts_, EncodeToAgent(message)}); }
  void ToOne(uint32_t host, const ToAgent& message) {
    down_.Add({host, host + 1, EncodeToAgent(message)});
  }
  std::vector<std::pair<uint32_t, TreeDown>> TakeDown() { return down_.Take(); }

  // `host` speaks straight from now on; false: it did already.
  bool Cut(uint32_t host);
  const HostOfRank& host_of_rank() const { return host_of_rank_; }
  // May `host` speak for all in the batch, and are these messages that go this way?
  // kInvalidArgument when not.
  Result<std::vector<std::pair<uint32_t, ToDriver>>> Open(uint32_t host, const TreeUp& batch) const;

 private:
  const uint32_t hosts_, width_;
  const HostOfRank host_of_rank_;
  TreeOutbox down_;
  std::vector<uint32_t> cut_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_TREE_AGENT_TREE_H_
