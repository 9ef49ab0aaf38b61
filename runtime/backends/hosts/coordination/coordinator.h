// Coordinator: tracks which hosts are ready for which operation, compares their details, and gives
// every host the same order of work. One per world, in the process of world rank 0.
//
// A pure state machine: messages in, messages out; the time is an argument. One thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/backends/hosts/coordination/batch_order.h"
#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/coordinator_options.h"
#include "runtime/backends/hosts/coordination/host_map.h"
#include "runtime/backends/hosts/coordination/pending_operation.h"
#include "runtime/base/clock.h"

namespace hvd {

// The detail reported by the leader of one host.
struct HostDetail {
  uint32_t rank = 0;
  std::string_view detail;
};

// Ok, or an error that says how these ranks disagree about the operation.
using CompareDetailsOf = std::function<Status(std::string_view name, std::span<const HostDetail>)>;

class Coordinator {
 public:
  using Answer = CoordinationAnswer;
  using Answers = CoordinationAnswers;

  Coordinator(const HostMap& map, CompareDetailsOf compare, CoordinatorOptions options);

  // Handles a message of world rank `from`. Refuses messages that only a coordinator sends.
  Status Receive(uint32_t from, Coordination&& msg, TimePoint now, Answers* answers);

  // Reports operations that some hosts have waited for too long, once per interval each. The
  // answers inform the leaders of those hosts.
  std::vector<std::string> Stalls(TimePoint now, Answers* answers);

  // Called before Close: recalls the early offer. True while the other leader may have used it;
  // then the coordinator continues to receive until this is false.
  bool RecallEarly(const std::string& why, Answers* answers);

  // The coordinator's own process leaves: fails all pending operations and tells every leader that
  // has sent a message.
  void Close(const std::string& why, Answers* answers);

 private:
  using Rounds = std::list<PendingOperation>;  // of one name: a fast host may be one round ahead
  // Domain, ranks of the set, name: the number of a set is not enough, because it is reused.
  using Key = std::tuple<int32_t, std::vector<uint32_t>, std::string>;
  using Waiting = std::map<Key, Rounds>;
  // An offer to a leader that has not reported. Its operation cannot fail meanwhile: the leader may
  // have used the offer already.
  struct Early {
    Waiting::iterator at;
    Rounds::iterator operation;
    uint32_t to = 0;
    size_t bytes = 0;  // of its part of the sum, which the operation no longer has
    Status failure;    // not ok: recalled; the operation's outcome if the leader returns it
  };

  void OnReady(uint32_t from, ReadyMessage&& msg, TimePoint now, Answers* answers);
  void OfferEarly(Waiting::iterator at, Rounds::iterator operation, Answers* answers);
  bool CompleteByEarlyOffer(uint32_t from, ReadyMessage* msg, Answers* answers);
  void Recall(Status failure, Answers* answers);
  void OnRecalled(uint32_t from, const RecalledMessage& msg, Answers* answers);
  void GiveBackEarly(Answers* answers);
  bool IsEarly(const PendingOperation& operation) const {
    return early_ && &*early_->operation == &operation;
  }
  void OnWithdraw(uint32_t from, const WithdrawMessage& msg, Answers* answers);
  void OnJoin(uint32_t from, const JoinMessage& msg, Answers* answers);
  void OnLeave(uint32_t from, uint32_t rank, Answers* answers);
  bool HasJoined(uint32_t rank) const;
  void IssueAllComplete(Answers* answers);

  std::span<const uint32_t> RanksOf(const ReadyMessage& msg) const;
  std::vector<uint32_t> MissingRanks(const PendingOperation& operation) const;
  void ReportAwaited(PendingOperation& operation, TimePoint now, Answers* answers);
  bool IssueIfComplete(Waiting::iterator at, Rounds::iterator operation, Answers* answers);
  PendingOperation Remove(Waiting::iterator at, Rounds::iterator operation);
  Status VerdictOf(const PendingOperation& operation, const std::string& name) const;
  Status JoinedVerdict(const PendingOperation& operation, const std::string& name) const;
  void Fail(const PendingOperation& operation, const Status& status, Answers* answers);

  const HostMap map_;
  const std::vector<uint32_t> world_;  // all ranks
  const CompareDetailsOf compare_;
  const CoordinatorOptions options_;
  Waiting waiting_;
  std::optional<Early> early_;
  BatchOrder order_;
  std::map<uint32_t, uint64_t> joined_;  // world rank -> ticket of its join
  std::set<uint32_t> failed_joins_;      // their join has failed
  std::set<uint32_t> left_;
  std::set<uint32_t> heard_of_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_H_
