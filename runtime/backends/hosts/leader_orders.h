// LeaderOrders: the operations that this leader has reported, and what it does at the coordinator's
// orders about them. Waits for nothing. One thread at a time (that of the Negotiator).
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_LEADER_ORDERS_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_LEADER_ORDERS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/members/leader_op.h"
#include "runtime/backends/hosts/members/result_publisher.h"
#include "runtime/backends/hosts/reported_ops.h"
#include "runtime/base/status.h"

namespace hvd {

// Operations that the leaders execute together.
struct LeaderBatch {
  RunMessage msg;
  std::vector<LeaderOpPointer> ops;
};

class LeaderOrders {
 public:
  // A batch is to be executed after all earlier ones.
  using OnBatch = std::function<void(LeaderBatch&&)>;

  // The publisher outlives this object.
  LeaderOrders(uint32_t rank, ResultPublisher& publisher, OnBatch on_batch)
      : rank_(rank), publisher_(publisher), on_batch_(std::move(on_batch)) {}

  // Only what the coordinator alone may say, but for an AbortNotice.
  static bool IsOrder(const Coordination& msg);
  // Obeys it. *reply: a message to the coordinator that follows from it, if one does.
  Status Obey(Coordination&& order, std::optional<Coordination>* reply);
  // To be called behind a report: the coordinator learns from that that the early offer is used.
  Status UseEarlyOffer();
  // Failures wait for PublishFailures: a sum may have to be stopped, which may take time.
  bool has_failures() const { return !failures_.empty(); }
  void PublishFailures();
  // No decision comes any more: all operations fail for this reason.
  void FailAll(const Status& why);

  ReportedOps& reported() { return reported_; }
  const ReportedOps& reported() const { return reported_; }
  // Operations that are to be executed, or have ended well, so far.
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
