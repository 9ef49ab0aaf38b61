// ReportedOps: this leader's operations that are reported to the coordinator and undecided, and the
// early offer of the other host for one of them, or for a future one. Used by one thread.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_REPORTED_OPS_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_REPORTED_OPS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/early_offer.h"
#include "runtime/backends/hosts/members/leader_op.h"

namespace hvd {

using LeaderOpPointer = std::shared_ptr<LeaderOp>;

class ReportedOps {
 public:
  // Its report must be sent before any of the calls below.
  void Add(LeaderOpPointer op) { ops_[op->ready.ticket] = std::move(op); }
  // Null: none with this ticket.
  LeaderOp* Find(uint64_t ticket) const {
    const auto found = ops_.find(ticket);
    return found == ops_.end() ? nullptr : found->second.get();
  }
  LeaderOpPointer Take(uint64_t ticket) {
    const auto taken = ops_.extract(ticket);
    return taken.empty() ? nullptr : taken.mapped();
  }
  const std::map<uint64_t, LeaderOpPointer>& all() const { return ops_; }
  void Clear() { ops_.clear(); }

  KeptOffer& early() { return early_; }
  // The order to execute the operation that the early offer completes, if it is here.
  std::optional<RunMessage> SettleByEarly() {
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

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_REPORTED_OPS_H_
