#include "runtime/backends/cuda/order/turn_cells.h"

namespace hvd {
namespace {

// The last turn of a cell that this thread holds from now on, or kHeld.
uint64_t Hold(TurnCell& cell) {
  uint64_t taken = cell.taken.load(std::memory_order_relaxed);
  while ((taken & TurnCell::kHeld) == 0) {
    if (cell.taken.compare_exchange_weak(taken, taken | TurnCell::kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed))
      return taken;
  }
  return TurnCell::kHeld;
}

}  // namespace

// All cells are held at the moment when the turns are assigned, so a caller that shares two of them
// with this one comes before or after it in both. Of two callers that want the same cells the first
// one continues, since both begin with the lowest rank.
bool AcquireTurns(std::span<TurnCell* const> cells, std::span<uint64_t> turns) {
  size_t held = 0;
  for (; held < cells.size(); ++held) {
    const uint64_t taken = Hold(*cells[held]);
    if (taken == TurnCell::kHeld) break;
    turns[held] = taken + 1;
  }
  const bool all = held == cells.size();
  for (size_t i = 0; i < held; ++i)
    cells[i]->taken.store(all ? turns[i] : turns[i] - 1, std::memory_order_release);
  return all;
}

Result<Location> HostTurns::OwnCell() {
  Status why;
  if (cell_ == nullptr) {
    cell_ = static_cast<TurnCell*>(
        heap_.Allocate(sizeof(TurnCell), /*zeroed=*/true, &why, Until::kWorldEnds));
  }
  if (cell_ == nullptr) return why;
  place_ = *heap_.Locate(cell_, sizeof(TurnCell));
  return place_;
}

Result<std::vector<TurnCell*>> HostTurns::Cells(std::span<const Location> places) {
  std::vector<TurnCell*> cells;
  for (const Location& place : places) {
    const bool own = place.segment == place_.segment && place.offset == place_.offset;
    if (own && cell_ != nullptr) {
      cells.push_back(cell_);
      continue;
    }
    const Result<std::byte*> cell = peer_memory_.Resolve(place, sizeof(TurnCell));
    if (!cell.ok()) return cell.status();
    cells.push_back(reinterpret_cast<TurnCell*>(*cell));
  }
  return cells;
}

}  // namespace hvd
