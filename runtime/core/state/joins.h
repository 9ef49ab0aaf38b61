// Joins: the ranks of this host that have called hvd_join and wait for all others to do so.
//
// A rank that has joined takes part in every round of the others without data, until all ranks have
// joined. Every rank sees a peer join at the same position of the peer's stream, so all ranks count
// the same members in each round. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_STATE_JOINS_H_
#define HVD_RUNTIME_CORE_STATE_JOINS_H_

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

struct Operation;
struct TensorName;

class Joins {
 public:
  // `peers`: ranks of this host; `self`: this rank's number among them.
  Joins(uint32_t peers, uint32_t self) : self_(self), joined_(peers, 0) {}

  bool any() const { return count_ != 0; }
  bool Has(uint32_t peer) const { return joined_[peer] != 0; }
  bool self() const { return Has(self_); }

  void Note(uint32_t peer);
  // All ranks have joined: the join is over, and each of them takes part again.
  void Clear();

  // Members other than this rank that have joined without announcing this round.
  uint32_t AbsentMembers(const TensorName& name) const;

  // Ok unless the operation of this round needs the members that have joined. The round is one that
  // this rank has submitted.
  Status CheckAbsent(const TensorName& name) const;

  // The time at which this rank joins, in its announcement of the join.
  static void Stamp(Operation* join, TimePoint now);
  // The member of this host with the latest stamp; of equal stamps, the one with the highest rank.
  static uint32_t LastJoined(const TensorName& name);

 private:
  const uint32_t self_;
  std::vector<uint8_t> joined_;  // per peer
  uint32_t count_ = 0;           // of peers that have joined, this rank included
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STATE_JOINS_H_
