// Process sets: the ranks that take part in a collective. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_REQUEST_PROCESS_SET_H_
#define HVD_RUNTIME_CORE_REQUEST_PROCESS_SET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/backends/collective.h"
#include "runtime/base/status.h"

namespace hvd {

struct ProcessSet {
  static constexpr uint32_t kNotHere = 0xffffffff;

  Group group;
  // Number of sets added before; unlike an id it is never reused. The same on all ranks.
  int32_t instance = 0;
  // This rank is a member. Otherwise the index fields of `group` are undefined.
  bool member = true;
  bool removing = false;                // its removal is announced: no new operations
  uint32_t in_flight = 0;               // operations of this rank
  uint64_t unnamed = 0;                 // unnamed operations so far
  std::vector<uint32_t> index_of_peer;  // index in Peers -> index in group.local, or kNotHere

  uint32_t local_members() const { return group.local_size(); }
  // World rank of a member on this host, by its index in group.local.
  uint32_t rank_of_member(uint32_t member) const {
    return group.ranks[group.local_to_group[member]];
  }
};

// The world of `size` ranks, all on this host, as rank `rank` sees it.
Group WorldOnOneHost(uint32_t rank, uint32_t size);

// The sets given to hvd_init, reduced to a world of `size` ranks: ranks that do not exist are
// dropped, and so are sets that are then empty, the whole world or equal to an earlier one.
std::vector<std::vector<uint32_t>> SetsWithin(const std::vector<std::vector<uint32_t>>& sets,
                                              uint32_t size);

class ProcessSetTable {
 public:
  // `world` becomes set 0.
  explicit ProcessSetTable(Group world);

  ProcessSet& world() const { return *sets_[0]; }
  // nullptr if there is no such set.
  ProcessSet* Find(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < sets_.size() ? sets_[static_cast<size_t>(id)].get()
                                                             : nullptr;
  }

  // kInvalidArgument if such a set cannot be added. `ranks` ascending.
  Status CheckNew(std::span<const uint32_t> ranks) const;
  // Uses the smallest free id.
  ProcessSet& Add(std::span<const uint32_t> ranks);
  // Frees the id immediately, and the set itself after its last operation, see Release.
  void Remove(ProcessSet* set);
  // Decrements in_flight; frees a removed set that has no operation left.
  void Release(ProcessSet* set);

  std::vector<int32_t> Ids() const;

 private:
  std::vector<std::unique_ptr<ProcessSet>> sets_;  // by id; null where free
  std::vector<std::unique_ptr<ProcessSet>> removed_;
  int32_t added_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_REQUEST_PROCESS_SET_H_
