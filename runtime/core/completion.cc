#include "runtime/core/completion.h"

#include <string>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/core/request/request_text.h"

namespace hvd {

void Completion::Complete(Operation* op, Status status, bool peers_may_work) {
  trace_.Done(op, status);
  executor_.Finish(op, status, peers_may_work);
  const TensorName* name = op->name;
  state_.finished.Add(op);
  state_.last_finished.Note(name->text);
  if (name->domain == NameTable::kSetsDomain) ChangeSets(op, name->own_detail, status.ok());
  if (op->collective == Collective::kJoin && op->started && !op->set->group.on_one_host()) {
    op->answer = static_cast<int32_t>(op->parts[0].result.rows);
    if (status.ok()) state_.joins.Clear();  // otherwise this rank stays joined
  }
  if (status.code() == Code::kAborted && closed_.ok()) peers_.NoteFailed();
  op->status = std::move(status);
  op->message = {};
  op->done = true;
  state_.sets.Release(std::exchange(op->set, nullptr));
  if (op->callback.function != nullptr) state_.callbacks.NoteDone(op);
  if (sleepers_ > 0) peers_.WakeSelf();
}

// The ranks have agreed to add or remove a set, or have refused to.
void Completion::ChangeSets(Operation* op, const Detail& detail, bool agreed) {
  ProcessSetTable& sets = state_.sets;
  if (detail.collective == Collective::kAddProcessSet) {
    if (agreed) op->answer = sets.Add(detail.members).group.id;
    return;
  }
  ProcessSet* set = sets.Find(detail.process_set);
  set->removing = false;
  if (!agreed) return;
  FailPendingOn(set);
  state_.names.Detach(set);
  sets.Remove(set);
}

void Completion::FailPendingOn(const ProcessSet* set) {
  state_.operations.ForEachPending([&](Operation& op) {
    if (op.set != set) return;
    std::string why = Format("process set {} was removed before {} was complete", set->group.id,
                             Quoted(op.name->text));
    // A started operation ends by itself.
    if (op.started) return executor_.Withdraw(op, std::move(why));
    outbox_.Withdraw(&op);
    Complete(&op, Aborted(std::move(why)), false);
  });
}

}  // namespace hvd
