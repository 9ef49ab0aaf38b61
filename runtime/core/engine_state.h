// EngineState: the tables that the parts of one engine share. One thread at a time (the engine's
// lock).
#ifndef HVD_RUNTIME_CORE_ENGINE_STATE_H_
#define HVD_RUNTIME_CORE_ENGINE_STATE_H_

#include <cstdint>
#include <utility>

#include "runtime/core/joins.h"
#include "runtime/core/name_table.h"
#include "runtime/core/operation.h"
#include "runtime/core/process_set.h"
#include "runtime/core/retire_queue.h"
#include "runtime/core/rounds.h"

namespace hvd {

struct EngineState {
  // `world` is set 0 as this rank sees it; `self` and `peers`: this rank's number among the ranks
  // of its host, and how many there are; `handles_given`: see OperationTable.
  EngineState(Group world, uint32_t self, uint32_t peers, uint32_t handles_given)
      : sets(std::move(world)),
        names(peers),
        operations(handles_given),
        joins(peers, self),
        rounds(names, joins, self),
        finished(names) {}
  EngineState(const EngineState&) = delete;  // its members refer to each other

  // World rank of a rank of this host.
  uint32_t WorldRank(uint32_t peer) const { return sets.world().rank_of_member(peer); }

  ProcessSetTable sets;
  NameTable names;
  OperationTable operations;
  Joins joins;
  Rounds rounds;
  RetireQueue finished;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_ENGINE_STATE_H_
