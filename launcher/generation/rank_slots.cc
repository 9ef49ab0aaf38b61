#include "launcher/generation/rank_slots.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hvd {

bool RankSlots::AllWaiting() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.waiting; });
}

bool RankSlots::in_use() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.generation != 0; });
}

std::vector<uint32_t> RankSlots::All() const {
  std::vector<uint32_t> all(slots_.size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

std::vector<uint32_t> RankSlots::Waiting() const {
  std::vector<uint32_t> found = All();
  std::erase_if(found, [this](uint32_t slot) { return !waiting(slot); });
  return found;
}

std::vector<uint32_t> RankSlots::In(uint64_t generation) const {
  std::vector<uint32_t> found = All();
  std::erase_if(found, [&](uint32_t slot) { return slots_[slot].generation != generation; });
  return found;
}

std::optional<uint32_t> RankSlots::At(uint32_t local_rank, uint64_t generation) const {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot& s = slots_[slot];
    if (s.generation == generation && s.local_rank == local_rank) return slot;
  }
  return std::nullopt;
}

bool RankSlots::StopWaiting(uint32_t slot) { return std::exchange(slots_[slot].waiting, false); }

void RankSlots::Enter(uint32_t slot, uint64_t generation, uint32_t local_rank) {
  Slot& s = slots_[slot];
  s.waiting = false;
  s.generation = generation;
  s.local_rank = local_rank;
}

void RankSlots::Leave(uint32_t slot, uint64_t commits) {
  slots_[slot].generation = 0;
  slots_[slot].commits += commits;
}

}  // namespace hvd
