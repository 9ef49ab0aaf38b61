#include "runtime/core/wait_notes.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/base/time_numbers.h"
#include "runtime/core/state/name_table.h"

namespace hvd {
namespace {

uint64_t Key(const Operation& op) { return KeyOf(op.name->domain, op.name->text); }

uint32_t ThisThread() { return static_cast<uint32_t>(::gettid()); }

}  // namespace

WaitNotes::WaitNotes(StallBoard* board, Duration warning, Duration shutdown) : board_(board) {
  if (board_ == nullptr) return;
  board_->warning_ms.store(static_cast<uint64_t>(MillisecondsOf(warning)),
                           std::memory_order_relaxed);
  board_->shutdown_ms.store(static_cast<uint64_t>(MillisecondsOf(shutdown)),
                            std::memory_order_release);
}

void WaitNotes::AddSubmitter() {
  submitter_ = ::pthread_self();
  const uint32_t thread = ThisThread();
  if (std::ranges::find(submitters_, thread) != submitters_.end()) return;
  submitters_.push_back(thread);
  hvd::NoteSubmitter(*board_, thread);
}

void WaitNotes::NoteWait(const Operation& op, const AwaitedRanks& awaited, EngineState& state,
                         TimePoint now) {
  if (board_ == nullptr) return;
  noted_ = true;
  hvd::NoteFinished(*board_, state.last_finished.count, state.last_finished.name);
  std::vector<uint64_t> pending;
  state.operations.ForEachPending([&](const Operation& other) { pending.push_back(Key(other)); });
  hvd::NotePending(*board_, pending);
  hvd::NoteWait(*board_,
                {Key(op), op.handle(), NanosecondsOf(op.waiting_since), NanosecondsOf(now),
                 ThisThread(), op.name->domain, awaited.submitted, awaited.ranks, op.name->text});
}

void WaitNotes::ClearWait() { hvd::EndWait(*board_, ThisThread()); }

}  // namespace hvd
