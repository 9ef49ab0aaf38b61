// The tensors of a batch, as its executors see them.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_BATCH_ITEMS_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_BATCH_ITEMS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/backends/collective.h"
#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/members/leader_op.h"

namespace hvd {

struct LeaderItem {
  LeaderOp* op = nullptr;
  LeaderTensor* part = nullptr;
  const RunEntry* entry = nullptr;
  size_t number = 0;  // of the part
};
using LeaderItems = std::span<const LeaderItem>;

// ops[i] belongs to msg.entries[i]. Both outlive the items.
std::vector<LeaderItem> ItemsOf(const RunMessage& msg,
                                std::span<const std::shared_ptr<LeaderOp>> ops);

// The tag of a call of a batch between leaders.
constexpr uint64_t TagOf(uint64_t batch, uint64_t call) { return (batch << 24) | call; }

// A sum that the inter-host thread computes piece by piece: any allreduce but Adasum.
bool IsSum(const CollectiveCall& call);
// Whether two sums can be fused.
bool TravelTogether(const CollectiveCall& a, const CollectiveCall& b);

// For the timeline: these items' operations do this from now on.
void NoteActivity(LeaderItems items, const ActivityNote& note);
// The note for an exchange of these items between hosts.
ActivityNote ExchangeNote(std::string_view comm, LeaderItems items, Collective collective,
                          size_t bytes);
// Notes the algorithm used.
void NoteAlgorithm(LeaderItems items, TraceAlgorithm algorithm);

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_BATCH_ITEMS_H_
