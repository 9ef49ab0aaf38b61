// Process sets: which ranks do collectives together. One thread at a time (the engine's lock).
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
  // Number of sets added before: unlike an id it is never used again. The same on all ranks.
  int32_t instance = 0;
  // This rank is a member. Otherwise the index fields of `group` mean nothing.
  bool member = true;
  bool removing = false;                // its removal is announced: it takes no new operation
  uint32_t in_flight = 0;               // operations of this rank
  uint64_t unnamed = 0;                 // operations so far whose caller gave no name
  std::vector<uint32_t> index_of_peer;  // number in Peers -> index in group.local, or kNotHere

  uint32_t local_members() const { return group.local_size(); }
  // World rank of a member on this host, by its index in group.local.
  uint32_t rank_of_member(uint32_t member) const {
    return group.ranks[group.local_to_group[member]];
  }
};

// The world of `size` ranks, all on this host, as rank `rank` sees it.
Group WorldOnOneHost(uint32_t rank, uint32_t size);

// What of these sets, given to hvd_init, a world of `size` ranks has: each set without the ranks
// that do not exist. A set of which nothing is left, that is the whole world, or that equals one
// before it is left out.
std::vector<std::vector<uint32_t>> SetsWithin(const std::vector<std::vector<uint32_t>>& sets,
                                              uint32_t size);

class ProcessSetTable {
 public:
  // `world` becomes set 0.
  explicit ProcessSetTable(Group world);

  ProcessSet& world() const { return *sets_[0]; }
  // nullptr when there is no such set.
  ProcessSet* Find(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < sets_.size() ? sets_[static_cast<size_t>(id)].get()
                                                             : nullptr;
  }

  // kInvalidArgument when such a set cannot be added. `ranks` ascending.
  Status CheckNew(std::span<const uint32_t> ranks) const;
  // Under the smallest free id.
  ProcessSet& Add(std::span<const uint32_t> ranks);
  // Frees the id at once, and the set itself with its last operation, see Release.
  void Remove(ProcessSet* set);
  // One operation less.
  void Release(ProcessSet* set);

  std::vector<int32_t> Ids() const;

 private:
  std::vector<std::unique_ptr<ProcessSet>> sets_;  // by id; null where free
  std::vector<std::unique_ptr<ProcessSet>> removed_;
  int32_t added_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_REQUEST_PROCESS_SET_H_
