// Rounds: whether the round of a name can start, whether its members agree, the inputs of all
// members, and which rounds can never complete.
//
// A round is one use of a name: it begins with the first announcement and ends when all members
// have announced it. Its state is in the TensorName. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_STATE_ROUNDS_H_
#define HVD_RUNTIME_CORE_STATE_ROUNDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/base/status.h"
#include "runtime/core/request/request.h"
#include "runtime/core/state/joins.h"
#include "runtime/core/state/name_table.h"
#include "runtime/core/state/operation.h"

namespace hvd {

class Rounds {
 public:
  // `self`: this rank's index among the ranks of this host.
  Rounds(NameTable& names, const Joins& joins, uint32_t self)
      : names_(names), joins_(joins), self_(self) {}

  // Every other member has announced the round or has joined, this rank has announced it, and it
  // has not started.
  bool Ready(const TensorName& name) const {
    if (name.operation == nullptr || !name.operation->sent || name.operation->started) return false;
    const uint32_t others = static_cast<uint32_t>(name.here.size()) - 1;
    return name.arrived == others ||
           (joins_.any() && name.arrived + joins_.AbsentMembers(name) == others);
  }

  // Compares the members' details. The result is the same on every rank: all compare the same
  // details of the same ranks in the same order.
  Status Agree(TensorName* name);

  // The descriptors and extents of all members for one tensor of the operation. Views of the name
  // and of this object's memory, valid until the next call.
  MemberInputs InputsOf(const TensorName& name, size_t part);

  // Clears a round that the others complete without this rank, which has joined.
  void DiscardIfOver(TensorName* name);

  // True while a process set change that the peer has announced is not complete on this rank. A
  // join by the peer takes effect only after the change: a round that the change ends must not
  // continue without the peer instead.
  bool SetsAreChanging(uint32_t peer) const;

  // The peer has left the world and all its messages have been read.
  void NoteGone(uint32_t peer);
  bool any_gone() const { return !gone_.empty(); }
  const std::vector<uint32_t>& gone() const { return gone_; }

  // Whether the round still needs an announcement of this peer. False for a non-member.
  bool Lacks(const TensorName& name, uint32_t peer) const;
  // No round of the name can complete any more: a peer that is gone has not announced this one.
  // Every rank reaches the same answer once it has noticed that the peer left.
  bool Unsatisfiable(const TensorName& name) const;
  // World ranks on this host whose announcement is missing; none for a round that has started.
  std::vector<uint32_t> MissingRanks(const TensorName& name) const;

 private:
  NameTable& names_;
  const Joins& joins_;
  const uint32_t self_;
  std::vector<uint32_t> gone_;                 // peers
  std::vector<RankDetail> compared_;           // scratch of Agree
  std::vector<BufferDescriptor> descriptors_;  // scratch of InputsOf, like the next two
  std::vector<Extent> extents_;
  std::vector<uint8_t> absent_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STATE_ROUNDS_H_
