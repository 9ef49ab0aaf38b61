// Joins: the ranks of this host that have called hvd_join and wait for all others to join.
//
// A joined rank takes part in every round of the others without data until all ranks have joined.
// Every rank sees a peer's join at the same position of the peer's stream, so all ranks count the
// same members in each round. One thread at a time (the engine's lock).
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
  // `peers`: number of ranks on this host; `self`: this rank's index among them.
  Joins(uint32_t peers, uint32_t self) : self_(self), joined_(peers, 0) {}

  bool any() const { return count_ != 0; }
  bool Has(uint32_t peer) const { return joined_[peer] != 0; }
  bool self() const { return Has(self_); }

  void Note(uint32_t peer);
  // All ranks have joined: the join is complete and each of them takes part again.
  void Clear();

  // Number of members other than this rank that have joined without announcing this round.
  uint32_t AbsentMembers(const TensorName& name) const;

  // An error if the operation of this round needs members that have joined. This rank has submitted
  // the round.
  Status CheckAbsent(const TensorName& name) const;

  // Stores the time at which this rank joins in its announcement.
  static void Stamp(Operation* join, TimePoint now);
  // The member on this host with the latest stamp; among equal stamps, the highest rank.
  static uint32_t LastJoined(const TensorName& name);

 private:
  const uint32_t self_;
  std::vector<uint8_t> joined_;  // per peer
  uint32_t count_ = 0;           // of peers that have joined, this rank included
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STATE_JOINS_H_
