// HostTurns: the TurnCell of this rank, and those of the members whose batches it orders. One
// thread.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_ORDER_HOST_TURNS_H_
#define HVD_RUNTIME_BACKENDS_CUDA_ORDER_HOST_TURNS_H_

#include <span>
#include <vector>

#include "runtime/backends/cuda/order/turn_cells.h"
#include "runtime/base/status.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class HostTurns {
 public:
  // Both outlive it; the cell stays in the heap until the world ends.
  HostTurns(SharedHeap& heap, SharedMemoryMap& peer_memory)
      : heap_(heap), peer_memory_(peer_memory) {}

  // Where this rank's cell is. The first call creates it.
  Result<Location> OwnCell();
  // The cells at these places.
  Result<std::vector<TurnCell*>> Cells(std::span<const Location> places);

 private:
  SharedHeap& heap_;
  SharedMemoryMap& peer_memory_;
  TurnCell* cell_ = nullptr;
  Location place_;  // of the cell
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_CUDA_ORDER_HOST_TURNS_H_
