#include "runtime/backends/hosts/members/results.h"

#include <algorithm>

#include "runtime/backends/shm/chunking.h"

namespace hvd {
namespace {

size_t RowBytes(const CollectiveCall& call, uint32_t member, size_t set_size) {
  const RowRange rows = RowsOf(member, call.rows, static_cast<uint32_t>(set_size));
  return static_cast<size_t>(rows.count) * call.row_bytes();
}

// Pieces of the members in `at`'s order (by host), reordered by rank.
void InRankOrder(std::vector<ResultPiece> by_member, ResultPlan* plan) {
  for (ResultPiece& piece : by_member) {
    piece.target = plan->bytes;
    plan->bytes += piece.bytes;
    if (piece.bytes == 0) continue;
    ResultPiece* last = plan->pieces.empty() ? nullptr : &plan->pieces.back();
    if (last != nullptr && last->source + last->bytes == piece.source) {
      last->bytes += piece.bytes;
    } else {
      plan->pieces.push_back(piece);
    }
  }
}

ResultPlan PlanAllgather(const CollectiveCall& call, const HostParts& hosts,
                         std::span<const int64_t> table) {
  ResultPlan plan;
  std::vector<ResultPiece> by_member(table.size());
  size_t at = 0;
  for (const HostParts::Part& part : hosts.parts) {
    for (uint32_t member : part.members) {
      by_member[member] = {at, 0, static_cast<size_t>(table[member]) * call.row_bytes()};
      at += by_member[member].bytes;
      plan.rows += table[member];
    }
  }
  InRankOrder(std::move(by_member), &plan);
  return plan;
}

ResultPlan PlanAlltoall(const CollectiveCall& call, const HostParts& hosts, size_t here,
                        std::span<const int64_t> table) {
  ResultPlan plan;
  const size_t size = call.group->size(), self = call.group->local_index;
  const size_t receivers = hosts.parts[here].members.size();
  std::vector<ResultPiece> by_member(size);
  size_t at = 0;
  for (const HostParts::Part& part : hosts.parts) {
    for (size_t receiver = 0; receiver < receivers; ++receiver) {
      for (uint32_t member : part.members) {
        const size_t bytes =
            static_cast<size_t>(table[receiver * size + member]) * call.row_bytes();
        if (receiver == self) by_member[member] = {at, 0, bytes};
        at += bytes;
      }
    }
  }
  plan.received_splits.assign(table.begin() + static_cast<ptrdiff_t>(self * size),
                              table.begin() + static_cast<ptrdiff_t>((self + 1) * size));
  for (int64_t rows : plan.received_splits) plan.rows += rows;
  InRankOrder(std::move(by_member), &plan);
  return plan;
}

ResultPlan PlanReducescatter(const CollectiveCall& call, const HostParts& hosts, size_t here) {
  ResultPlan plan;
  size_t at = 0;
  for (uint32_t member : hosts.parts[here].members) {
    const size_t bytes = RowBytes(call, member, call.group->size());
    if (member == call.group->index) {
      plan.bytes = bytes;
      plan.rows = RowsOf(member, call.rows, call.group->size()).count;
      if (bytes != 0) plan.pieces.push_back({at, 0, bytes});
    }
    at += bytes;
  }
  return plan;
}

}  // namespace

size_t ScatteredBytes(const CollectiveCall& call, const HostParts::Part& part, size_t set_size) {
  size_t bytes = 0;
  for (uint32_t member : part.members) bytes += RowBytes(call, member, set_size);
  return bytes;
}

ResultPlan PlanResult(const CollectiveCall& call, const HostParts& hosts, size_t here,
                      std::span<const int64_t> table) {
  switch (call.collective) {
    case Collective::kAllgather: return PlanAllgather(call, hosts, table);
    case Collective::kAlltoall: return PlanAlltoall(call, hosts, here, table);
    case Collective::kReducescatter: return PlanReducescatter(call, hosts, here);
    case Collective::kAllreduce:
    case Collective::kBroadcast: break;
    default: return {};
  }
  ResultPlan plan;
  plan.bytes = call.bytes();
  plan.rows = call.rows;
  if (plan.bytes != 0) plan.pieces.push_back({0, 0, plan.bytes});
  return plan;
}

}  // namespace hvd
