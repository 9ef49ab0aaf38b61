// EngineState: the tables shared by the parts of one engine. One thread at a time (the engine's
// lock).
#ifndef HVD_RUNTIME_CORE_STATE_ENGINE_STATE_H_
#define HVD_RUNTIME_CORE_STATE_ENGINE_STATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/core/request/process_set.h"
#include "runtime/core/state/callback_queue.h"
#include "runtime/core/state/joins.h"
#include "runtime/core/state/name_table.h"
#include "runtime/core/state/operation.h"
#include "runtime/core/state/retire_queue.h"
#include "runtime/core/state/rounds.h"

namespace hvd {

// The operation of this rank that ended last, and how many have ended.
struct LastFinished {
  uint64_t count = 0;
  char name[64] = "";  // truncated

  void Note(std::string_view text) {
    ++count;
    const size_t length = std::min(text.size(), sizeof name - 1);
    std::memcpy(name, text.data(), length);
    name[length] = '\0';
  }
};

struct EngineState {
  // `world` is set 0 as this rank sees it; `self`: this rank's index among the `peers` ranks of its
  // host; `handles_given`: see OperationTable.
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
  CallbackQueue callbacks;
  LastFinished last_finished;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STATE_ENGINE_STATE_H_
