// TreeRouter: the driver's routing. Numbers the hosts that have a rank, forms the tree over them
// (agent_tree.h) and sends each message either over a host's own stream or down the tree.
//
// Hosts are those of the plan; inside the tree each has a number, its place among the hosts with a
// rank. Pure: `send` is the only way out, and the time is passed in.
#ifndef HVD_LAUNCHER_OVERLAY_TREE_TREE_ROUTER_H_
#define HVD_LAUNCHER_OVERLAY_TREE_TREE_ROUTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/overlay/tree/agent_tree.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

class TreeRouter {
 public:
  // Sends over the stream of a host.
  using Sender = std::function<void(uint32_t host, const ToAgent& message)>;

  explicit TreeRouter(Sender send) : send_(std::move(send)) {}

  // Forms the tree for the final plan; later calls change nothing. With no more hosts than `radix`
  // there is no tree: the driver sends to every agent directly.
  void Form(const Plan& plan, uint32_t radix);
  // The hosts of another generation of an elastic job, which has no tree.
  void Reform(const Plan& plan);
  // Other ranks on the same hosts, in the same order, before anything was sent through the tree.
  void UseRanks(const Plan& plan);
  // Gives the tree up before anything was sent through it.
  void Flatten();

  bool formed() const { return tree_.has_value(); }
  bool flat() const { return !formed() || tree_->flat(); }
  // The hosts with a rank, by number.
  const std::vector<uint32_t>& hosts() const { return hosts_; }
  uint32_t count() const { return static_cast<uint32_t>(hosts_.size()); }
  bool Has(uint32_t host) const;
  // The number of a host that Has is true for.
  uint32_t NumberOf(uint32_t host) const;

  // The hosts that this host probes: enough to connect all hosts, and its neighbours in the tree.
  // None for a host without a rank.
  std::vector<uint32_t> ProbePartnersOf(uint32_t host) const;
  // Other agents will connect to this host.
  bool HasChildren(uint32_t host) const;
  // Where the children of this host find it, as its agent reported.
  void NoteRecord(uint32_t host, std::string record) { records_[host] = std::move(record); }
  // Fills in the fields about the tree.
  void SetPlace(uint32_t host, StartJob& start) const;
  // How many keys the host and those below it may name (MostKeys).
  uint64_t MostKeysOf(uint32_t host) const;

  void ToAll(const ToAgent& message);
  // An entry of the key-value table. Those of generation 0 are sent before the tree exists.
  void ToHost(uint32_t host, const KeyValue& entry);
  // Sends the messages queued for the tree, one batch per child.
  void Flush();

  // Checks a message from a host's own stream: it may concern that host's ranks only, and none
  // before the workers were started.
  Status CheckDirect(uint32_t host, const ToDriver& message, bool started) const;
  // Opens a batch from the tree: its messages with the hosts that sent them. kInvalidArgument: the
  // host may not send this batch.
  Result<std::vector<std::pair<uint32_t, ToDriver>>> Open(uint32_t host, const TreeUp& batch) const;

  // The agent of the host lost its parent and sends directly from now on. Usually the parent has
  // died, which will be noticed; if it is still alive after `patience`, only their connection is
  // lost. False: already known.
  bool Cut(uint32_t host, const std::string& reason, TimePoint now, Duration patience);
  // When PopOverdue has something to return; TimePoint::max(): never.
  TimePoint NextTick() const;
  // The hosts whose patience has run out, each once, with the reason to give them up.
  std::vector<std::pair<uint32_t, std::string>> PopOverdue(TimePoint now);

 private:
  struct Lost {
    TimePoint due;
    std::string reason;
  };

  const Sender send_;
  void SetHosts(const Plan& plan);

  std::vector<uint32_t> hosts_;
  std::vector<uint32_t> number_of_;  // by host; kNoNumber: it has no rank
  uint32_t radix_ = 0;
  std::optional<TreeRoot> tree_;
  std::map<uint32_t, std::string> records_;
  std::map<uint32_t, Lost> lost_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_TREE_TREE_ROUTER_H_
