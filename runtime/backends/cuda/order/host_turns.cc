#include "runtime/backends/cuda/order/host_turns.h"

namespace hvd {

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
