#include "runtime/backends/hosts/batch_items.h"

#include <utility>

namespace hvd {
namespace {

TraceActivity ExchangeOf(std::string_view comm) {
  if (comm == "gloo") return TraceActivity::kGloo;
  return comm == "mpi" ? TraceActivity::kMpi : TraceActivity::kExchange;
}

// The items of one operation are adjacent.
template <typename Body>
void ForEachOp(LeaderItems items, Body&& body) {
  const LeaderOp* last = nullptr;
  for (const LeaderItem& item : items) {
    if (std::exchange(last, item.op) != item.op) body(*item.op);
  }
}

}  // namespace

std::vector<LeaderItem> ItemsOf(const RunMessage& msg,
                                std::span<const std::shared_ptr<LeaderOp>> ops) {
  std::vector<LeaderItem> items;
  for (size_t i = 0; i < ops.size(); ++i) {
    for (size_t p = 0; p < ops[i]->parts.size(); ++p) {
      items.push_back({ops[i].get(), ops[i]->parts[p].get(), &msg.entries[i], p});
    }
  }
  return items;
}

bool IsSum(const CollectiveCall& call) {
  return call.collective == Collective::kAllreduce && call.op != ReduceOp::kAdasum;
}

bool TravelTogether(const CollectiveCall& a, const CollectiveCall& b) {
  return IsSum(a) && IsSum(b) && a.op == b.op && a.dtype == b.dtype && a.prescale == b.prescale &&
         a.postscale == b.postscale;
}

void NoteActivity(LeaderItems items, const ActivityNote& note) {
  ForEachOp(items, [&](LeaderOp& op) { op.Begin(note); });
}

ActivityNote ExchangeNote(std::string_view comm, LeaderItems items, Collective collective,
                          size_t bytes) {
  return {.bytes = bytes,
          .activity = ExchangeOf(comm),
          .collective = static_cast<uint8_t>(collective),
          .tensors = static_cast<uint32_t>(items.size())};
}

void NoteAlgorithm(LeaderItems items, TraceAlgorithm algorithm) {
  ForEachOp(items, [algorithm](LeaderOp& op) {
    if (op.activities) op.activities->SetAlgorithm(algorithm);
  });
}

}  // namespace hvd
