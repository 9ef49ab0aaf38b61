// BatchOrder: gives leaders the operations that all hosts are ready for, in one order for all: as
// batches with ascending numbers. Few batches are in flight at once, so that operations that become
// ready meanwhile are fused. Part of the Coordinator; a pure state machine.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_BATCH_ORDER_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_BATCH_ORDER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/coordinator_options.h"
#include "runtime/backends/hosts/coordination/host_map.h"
#include "runtime/backends/hosts/coordination/pending_operation.h"

namespace hvd {

class BatchOrder {
 public:
  // Both outlive it.
  BatchOrder(const HostMap& map, const CoordinatorOptions& options)
      : map_(map), options_(options), two_hosts_(FirstMembers(map, {}).size() == 2) {}

  // All hosts have reported it and agree.
  void Add(PendingOperation operation, CoordinationAnswers* answers);
  // Reported by the first leader of the batch.
  void OnDone(uint64_t number, CoordinationAnswers* answers);
  // Removes and returns the operations held back, of this leader or of all.
  std::vector<PendingOperation> RemoveHeld(std::optional<uint32_t> leader);

 private:
  struct Ready {
    PendingOperation operation;
    RunEntry run;
    uint64_t fusion_key = 0, bytes = 0;
  };
  // The operations of the same leaders, which never delay those of other leaders here.
  struct Lane {
    std::deque<Ready> held;  // ready, but enough is in flight
    uint32_t under_way = 0;  // batches
  };

  Ready MakeReady(PendingOperation operation) const;
  std::vector<std::vector<int64_t>> ExtentsFor(const PendingOperation& operation,
                                               uint32_t host) const;
  uint64_t FusionBytes() const;
  SumCut CutNow() const;
  void IssueHeld(Lane& lane, CoordinationAnswers* answers);
  void Issue(Lane& lane, std::span<const Ready> batch, CoordinationAnswers* answers);
  void AddNotes(const PendingOperation& operation, RunMessage* msg);
  std::vector<uint64_t> AssignTurns(const PendingOperation& operation, const LeaderReport& report);

  const HostMap& map_;
  const CoordinatorOptions& options_;
  const bool two_hosts_;
  std::map<std::vector<uint32_t>, Lane> lanes_;  // by leaders
  std::map<uint64_t, Lane*> running_;            // by number of the batch
  uint64_t next_number_ = 1;
  std::map<uint32_t, uint64_t> turns_;                               // the last of each rank
  std::map<std::vector<uint32_t>, std::vector<std::string>> notes_;  // the last, by ranks of a set
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_BATCH_ORDER_H_
