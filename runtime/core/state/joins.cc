#include "runtime/core/state/joins.h"

#include <algorithm>
#include <string>

#include "runtime/base/text/comma_separated.h"
#include "runtime/core/request/request_text.h"
#include "runtime/core/state/name_table.h"
#include "runtime/core/state/operation.h"

namespace hvd {

void Joins::Note(uint32_t peer) {
  joined_[peer] = 1;
  ++count_;
}

void Joins::Clear() {
  std::fill(joined_.begin(), joined_.end(), uint8_t{0});
  count_ = 0;
}

uint32_t Joins::AbsentMembers(const TensorName& name) const {
  if (name.domain == NameTable::kJoinDomain) return 0;
  uint32_t absent = 0;
  for (uint32_t i = 0; i < name.here.size(); ++i) {
    const uint32_t peer = name.set->group.local[i];
    if (peer != self_ && name.here[i] == 0 && joined_[peer] != 0) ++absent;
  }
  return absent;
}

Status Joins::CheckAbsent(const TensorName& name) const {
  const Collective collective = name.operation->collective;
  if (collective == Collective::kAllreduce || collective == Collective::kBarrier) {
    return Status::Ok();
  }
  std::vector<uint32_t> ranks;
  for (uint32_t i = 0; i < name.here.size(); ++i) {
    const uint32_t peer = name.set->group.local[i];
    if (peer == self_ || name.here[i] != 0) continue;
    ranks.push_back(name.set->rank_of_member(i));
  }
  return Mismatch(std::string(NameOf(collective)) + " of " + Quoted(name.text) + " needs rank " +
                  CommaSeparated(ranks) +
                  ", which has joined; only allreduce and barrier go on without ranks that "
                  "called hvd.join()");
}

// Backends leave this word of a join's descriptor unused.
void Joins::Stamp(Operation* join, TimePoint now) {
  join->parts[0].descriptor.words[0] = static_cast<uint64_t>(now.time_since_epoch().count());
}

uint32_t Joins::LastJoined(const TensorName& name) {
  uint32_t last = 0;
  for (uint32_t i = 1; i < name.descriptors.size(); ++i) {
    if (name.descriptors[i].words[0] >= name.descriptors[last].words[0]) last = i;
  }
  return last;
}

}  // namespace hvd
