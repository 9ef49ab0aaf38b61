// The turns of the ranks of one host. A rank belongs to several process sets; its next turn is its
// next NCCL batch, of any set. The member that orders the batches of a set takes a turn of all its
// members at once, so ranks that share two sets have their batches in one order, and kernels on
// their GPUs cannot deadlock. Nothing blocks.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_ORDER_TURN_CELLS_H_
#define HVD_RUNTIME_BACKENDS_CUDA_ORDER_TURN_CELLS_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/align.h"
#include "runtime/base/status.h"
#include "runtime/device/shared_heap.h"
#include "runtime/segment/job_page.h"

namespace hvd {

// Of a rank, in shared memory of the host, from its first operation to the end of the world. Starts
// at 0.
struct alignas(kCacheLine) TurnCell {
  static constexpr uint64_t kHeld = uint64_t{1} << 63;

  std::atomic<uint64_t> taken;  // the last turn; with kHeld: the next one is being taken
};

// The next turn of each rank, from 1 on and without gaps. False, with nothing taken, if a turn of
// one of them is being taken now: try again. `cells` are in the order of ranks. Any thread of any
// process.
bool AcquireTurns(std::span<TurnCell* const> cells, std::span<uint64_t> turns);

// The TurnCell of this rank, and those of the members whose batches it orders. One thread.
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

#endif  // HVD_RUNTIME_BACKENDS_CUDA_ORDER_TURN_CELLS_H_
