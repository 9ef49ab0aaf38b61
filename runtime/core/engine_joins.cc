// What changes who takes part: joins, and process sets that come and go.
//
// A rank that has joined is present in everything with nothing to give, until the join is over,
// which is when all have joined. All ranks see it join at the same place of its stream, so for each
// round they all count the same ranks.
#include <algorithm>

#include "runtime/core/engine.h"
#include "runtime/core/request_text.h"

namespace hvd {

Status Engine::CheckNotJoined() const {
  return InvalidArgument(
      "rank " + std::to_string(WorldRank(self_)) +
      " has joined and submits nothing more until all ranks have; call hvd.join() last");
}

void Engine::NoteJoined(uint32_t peer) {
  joined_[peer] = 1;
  ++joined_count_;
  SettleRounds();
}

// With one more rank that has joined, rounds may be complete.
void Engine::SettleRounds() {
  TensorName* join = nullptr;
  for (TensorName* name : names_.All()) {
    if (!closed_.ok()) return;  // names are gone
    if (name->domain == NameTable::kJoinDomain) {
      join = name;
    } else if (Ready(*name)) {
      Start(name);
    } else {
      DiscardIfOver(name);
    }
  }
  // Last, because nobody counts as joined any more then.
  if (closed_.ok() && join != nullptr && Ready(*join)) Start(join);
}

// A round of the others, which they do without us.
void Engine::DiscardIfOver(TensorName* name) {
  if (joined_[self_] == 0 || name->operation != nullptr || name->arrived == 0) return;
  const uint32_t others = static_cast<uint32_t>(name->here.size()) - 1;
  if (name->arrived + AbsentMembers(*name) != others) return;
  name->ClearRound();
  names_.ForgetIfUnused(name);
}

// The peer has announced a change of sets that is not over here. Its join comes after it, also for
// us: what the change ends must not go on without the peer instead.
bool Engine::SetsAreChanging(uint32_t peer) const {
  const TensorName* name = names_.Find(NameTable::kSetsDomain, NameTable::kSetsName);
  return name != nullptr && name->here[MemberOf(*name, peer)] != 0 && !Unsatisfiable(*name);
}

// Members other than this rank that have joined without announcing this round.
uint32_t Engine::AbsentMembers(const TensorName& name) const {
  if (name.domain == NameTable::kJoinDomain) return 0;
  uint32_t absent = 0;
  for (uint32_t i = 0; i < name.here.size(); ++i) {
    const uint32_t peer = name.set->group.local[i];
    if (peer != self_ && name.here[i] == 0 && joined_[peer] != 0) ++absent;
  }
  return absent;
}

// Ok if the others can go on without those that have joined.
Status Engine::CheckJoined(const TensorName& name) const {
  const Collective collective = name.operation->collective;
  if (collective == Collective::kAllreduce || collective == Collective::kBarrier) {
    return Status::Ok();
  }
  std::string ranks;
  for (uint32_t i = 0; i < name.here.size(); ++i) {
    const uint32_t peer = name.set->group.local[i];
    if (peer == self_ || name.here[i] != 0) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(WorldRank(peer));
  }
  return Mismatch(std::string(NameOf(collective)) + " of " + Quoted(name.text) + " needs rank " +
                  ranks +
                  ", which has joined; only allreduce and barrier go on without ranks that "
                  "called hvd.join()");
}

// Who joined last on this host: a member. Equal times are told apart by the rank.
uint32_t Engine::LastJoined(const TensorName& name) const {
  uint32_t last = 0;
  for (uint32_t i = 1; i < name.descriptors.size(); ++i) {
    if (name.descriptors[i].words[0] >= name.descriptors[last].words[0]) last = i;
  }
  return last;
}

// All ranks have joined; whoever joined last is the answer.
void Engine::FinishJoin(Operation* op) {
  TensorName* name = op->name;
  const Group& group = op->set->group;
  op->answer = static_cast<int32_t>(group.ranks[group.local_to_group[LastJoined(*name)]]);
  ForgetJoins();
  name->ClearRound();
  Complete(op, Status::Ok(), false);
}

void Engine::ForgetJoins() {
  std::fill(joined_.begin(), joined_.end(), uint8_t{0});
  joined_count_ = 0;
}

// A set is added or removed when all have agreed, or it was not to be.
void Engine::ChangeSets(Operation* op, const Detail& detail, bool agreed) {
  if (detail.collective == Collective::kAddProcessSet) {
    if (agreed) op->answer = sets_.Add(detail.members).group.id;
    return;
  }
  ProcessSet* set = sets_.Find(detail.process_set);
  set->removing = false;
  if (!agreed) return;
  FailPendingOn(set);
  names_.Detach(set);
  sets_.Remove(set);
}

void Engine::FailPendingOn(const ProcessSet* set) {
  operations_.ForEachPending([&](Operation& op) {
    if (op.set != set) return;
    std::string why = "process set " + std::to_string(set->group.id) + " was removed before " +
                      Quoted(op.name->text) + " was complete";
    if (op.started) {
      // It ends by itself; members on other hosts that have not come do not come any more.
      const OperationPart& first = op.parts[0];
      if (!first.done) backend_.Withdraw(first.call, first.state.get(), std::move(why));
      return;
    }
    std::erase(unsent_, &op);
    Complete(&op, Aborted(std::move(why)), false);
  });
}

}  // namespace hvd
