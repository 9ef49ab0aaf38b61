// RankSlots: for each slot of a host, whether its process waits for a generation, or in which one
// it is, and how many commits it has passed. A slot is a number from 0 that a process keeps from
// generation to generation. Pure. One thread at a time.
#ifndef HVD_LAUNCHER_GENERATION_RANK_SLOTS_H_
#define HVD_LAUNCHER_GENERATION_RANK_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hvd {

class RankSlots {
 public:
  explicit RankSlots(size_t count) : slots_(count) {}

  uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }
  // Appends slots.
  void Add(size_t count) { slots_.resize(slots_.size() + count); }

  bool waiting(uint32_t slot) const { return slots_[slot].waiting; }
  // True also without slots.
  bool AllWaiting() const;
  // At least one slot is in a generation.
  bool in_use() const;
  // 0: none.
  uint64_t generation(uint32_t slot) const { return slots_[slot].generation; }
  // In generations that its process has left.
  uint64_t commits(uint32_t slot) const { return slots_[slot].commits; }

  std::vector<uint32_t> All() const;
  std::vector<uint32_t> Waiting() const;
  std::vector<uint32_t> In(uint64_t generation) const;
  // The slot that is in this generation as this local rank.
  std::optional<uint32_t> At(uint32_t local_rank, uint64_t generation) const;

  // It asked for a generation.
  void Wait(uint32_t slot) { slots_[slot].waiting = true; }
  // Whether it waited until now.
  bool StopWaiting(uint32_t slot);
  // Ends its wait. `generation` is not 0.
  void Enter(uint32_t slot, uint64_t generation, uint32_t local_rank);
  // Leaves its generation, in which it passed `commits` commits.
  void Leave(uint32_t slot, uint64_t commits);

 private:
  struct Slot {
    bool waiting = false;
    uint64_t generation = 0;
    uint32_t local_rank = 0;  // in that generation
    uint64_t commits = 0;
  };

  std::vector<Slot> slots_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_GENERATION_RANK_SLOTS_H_
