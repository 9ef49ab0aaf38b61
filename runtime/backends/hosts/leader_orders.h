// LeaderOrders: the operations that this leader has reported; carries out the coordinator's orders
// about them. Never blocks. One thread at a time (the Negotiator's).
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_LEADER_ORDERS_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_LEADER_ORDERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/early_offer.h"
#include "runtime/backends/hosts/members/leader_op.h"
#include "runtime/backends/hosts/members/result_publisher.h"
#include "runtime/base/status.h"

namespace hvd {

using LeaderOpPointer = std::shared_ptr<LeaderOp>;

// This leader's operations that are reported to the coordinator and undecided, and the early offer
// of the other host for one of them, or for a future one.
class ReportedOps {
 public:
  // Its report must be sent before any of the calls below.
  void Add(LeaderOpPointer op) { ops_[op->ready.ticket] = std::move(op); }
  // Null: none with this ticket.
  LeaderOp* Find(uint64_t ticket) const {
    const auto found = ops_.find(ticket);
    return found == ops_.end() ? nullptr : found->second.get();
  }
  LeaderOpPointer Remove(uint64_t ticket) {
    const auto taken = ops_.extract(ticket);
    return taken.empty() ? nullptr : taken.mapped();
  }
  const std::map<uint64_t, LeaderOpPointer>& all() const { return ops_; }
  void Clear() { ops_.clear(); }

  KeptOffer& early() { return early_; }
  // The order to execute the operation that the early offer completes, if it is here.
  std::optional<RunMessage> RunOfEarlyOffer() {
    if (early_.empty()) return std::nullopt;
    for (const auto& [ticket, op] : ops_) {
      if (early_.IsFor(op->ready)) return early_.Use(op->ready, op->offered_bytes, op->set_size);
    }
    return std::nullopt;
  }

 private:
  std::map<uint64_t, LeaderOpPointer> ops_;  // by ticket
  KeptOffer early_;
};

// Operations that the leaders execute together.
struct LeaderBatch {
  RunMessage msg;
  std::vector<LeaderOpPointer> ops;
};

class LeaderOrders {
 public:
  // Executes the batch after all earlier ones.
  using OnBatch = std::function<void(LeaderBatch&&)>;

  // The publisher outlives this object.
  LeaderOrders(uint32_t rank, ResultPublisher& publisher, OnBatch on_batch)
      : rank_(rank), publisher_(publisher), on_batch_(std::move(on_batch)) {}

  // Whether only the coordinator may send it, except an AbortNotice.
  static bool IsOrder(const Coordination& msg);
  // Carries it out. *reply: the resulting message to the coordinator, if any.
  Status Execute(Coordination&& order, std::optional<Coordination>* reply);
  // Called after a report, from which the coordinator learns that the early offer is used.
  Status UseEarlyOffer();
  // Failures wait for PublishFailures: stopping a sum may take time.
  bool has_failures() const { return !failures_.empty(); }
  void PublishFailures();
  // No more decisions will come: fails all operations for this reason.
  void FailAll(const Status& why);

  ReportedOps& reported() { return reported_; }
  const ReportedOps& reported() const { return reported_; }
  // Operations so far that are to be executed or have succeeded.
  uint64_t settled() const { return settled_; }

 private:
  Status OnRun(RunMessage&& msg);
  Status OnTurn(RunMessage&& msg, std::optional<Coordination>* reply);
  void OnEnd(const EndMessage& msg);
  void OnWait(const WaitMessage& msg);

  const uint32_t rank_;  // of the world
  ResultPublisher& publisher_;
  const OnBatch on_batch_;
  ReportedOps reported_;
  std::vector<std::pair<LeaderOpPointer, Status>> failures_;
  uint64_t settled_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_LEADER_ORDERS_H_
