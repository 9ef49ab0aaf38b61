#include "runtime/core/progress_engine.h"

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/core/request/request_text.h"

namespace hvd {
namespace {

// Every rank arrives at the same error by itself.
bool SameEverywhere(const Status& status) {
  return status.code() == Code::kUnsupported || status.code() == Code::kInvalidArgument;
}

}  // namespace

ProgressEngine::ProgressEngine(Peers& peers, EngineState& state, Executor& executor,
                               TraceLog& trace, ReportEnding report_ending)
    : peers_(peers),
      state_(state),
      executor_(executor),
      trace_(trace),
      report_ending_(std::move(report_ending)),
      self_(peers.rank()),
      count_(peers.size()),
      inbox_(peers, state.names, state.sets, state.joins, state.rounds),
      outbox_(peers, state.names),
      completion_(peers, state, executor, outbox_, trace) {}

void ProgressEngine::Launch(Operation* op, const RequestSpec& spec) {
  const Rounds& rounds = state_.rounds;
  // A join is announced anyway: the other ranks continue without this one.
  const bool join = spec.collective == Collective::kJoin;
  if (rounds.any_gone() && !join && rounds.Unsatisfiable(*op->name)) return FailUnsatisfiable(op);
  if (spec.collective == Collective::kRemoveProcessSet) {
    state_.sets.Find(spec.process_set)->removing = true;
  }
  outbox_.Announce(op);
  if (join) {
    NoteJoined(self_);
  } else if (rounds.Ready(*op->name)) {
    Start(op->name);
  }
}

// ---- receiving and sending

void ProgressEngine::Communicate() {
  if (!CheckOpen().ok()) return;
  Receive();
  if (outbox_.has_unsent()) SendUnsent();
  outbox_.SendAbortNotice();
}

void ProgressEngine::Receive() {
  for (uint32_t peer = 0; peer < count_; ++peer) {
    if (peer != self_) ReceiveFrom(peer);
  }
}

void ProgressEngine::ReceiveFrom(uint32_t peer) {
  while (closed().ok()) {
    const Inbox::Arrival arrival = inbox_.Next(peer);
    if (arrival.event == Inbox::Event::kNone) return;
    if (arrival.event == Inbox::Event::kFailed) {
      if (inbox_.failure().code() == Code::kAborted) executor_.Abort(inbox_.failure());
      FailAll(inbox_.failure());
      break;
    }
    trace_.Arrived(arrival.name, arrival.member);
    Announced(arrival.name, arrival.member, peer);
    inbox_.Consume(peer);
  }
  inbox_.Drain(peer);
}

void ProgressEngine::Announced(TensorName* name, uint32_t member, uint32_t peer) {
  if (name->domain == NameTable::kJoinDomain) return NoteJoined(peer);
  if (state_.rounds.Ready(*name)) return Start(name);
  Inbox::KeepPayloads(name, member);
  state_.rounds.DiscardIfOver(name);
}

void ProgressEngine::SendUnsent() {
  while (const Operation* op = outbox_.AnnounceNext()) {
    if (state_.rounds.Ready(*op->name)) Start(op->name);
  }
}

// ---- from the last announcement of a round to its end

void ProgressEngine::Start(TensorName* name) {
  Operation* op = name->operation;
  op->started = true;
  trace_.Started(*op);
  name->descriptors[op->set->group.local_index] = op->parts[0].descriptor;
  const Group& group = op->set->group;
  const bool join = op->collective == Collective::kJoin;
  if (join && group.on_one_host()) return FinishJoin(op);
  if (join) op->parts[0].call.root = group.local_to_group[Joins::LastJoined(*name)];
  Status agreed = join ? Status::Ok() : state_.rounds.Agree(name);
  if (!agreed.ok() && group.on_one_host()) {
    // All ranks detect the disagreement, so none of them uses the memory of this rank.
    name->ClearRound();
    return completion_.Complete(op, std::move(agreed), false);
  }
  Status started = executor_.Start(op, agreed);
  name->ClearRound();
  if (!started.ok()) {
    FailHere(op, started);
  } else if (op->parts_left == 0) {
    completion_.Complete(op, Status::Ok(), false);
  } else {
    running_.push_back(op);
  }
}

void ProgressEngine::Advance(Operation* op) {
  Status advanced = executor_.Advance(op);
  if (advanced.ok() && op->parts_left != 0) return;
  std::erase(running_, op);
  if (advanced.ok()) return completion_.Complete(op, Status::Ok(), false);
  FailHere(op, advanced);
}

void ProgressEngine::AdvanceOthers(const Operation* except) {
  for (size_t i = 0; i < running_.size();) {
    Operation* op = running_[i];
    if (op != except) Advance(op);
    if (i < running_.size() && running_[i] == op) ++i;
  }
}

bool ProgressEngine::AdvanceDevices() {
  bool left = false;
  for (size_t i = 0; i < running_.size();) {
    Operation* op = running_[i];
    if (op->on_device()) Advance(op);
    if (i >= running_.size() || running_[i] != op) continue;
    left = left || op->on_device();
    ++i;
  }
  return left;
}

// ---- joins

void ProgressEngine::NoteJoined(uint32_t peer) {
  state_.joins.Note(peer);
  CompleteRounds();
}

// With one more joined rank, rounds may be complete.
void ProgressEngine::CompleteRounds() {
  TensorName* join = nullptr;
  for (TensorName* name : state_.names.All()) {
    if (!closed().ok()) return;  // the names are gone
    if (name->domain == NameTable::kJoinDomain) {
      join = name;
    } else if (state_.rounds.Ready(*name)) {
      Start(name);
    } else {
      state_.rounds.DiscardIfOver(name);
    }
  }
  // Last, because no rank counts as joined after it.
  if (closed().ok() && join != nullptr && state_.rounds.Ready(*join)) Start(join);
}

// All ranks have joined; the answer is the rank that joined last.
void ProgressEngine::FinishJoin(Operation* op) {
  TensorName* name = op->name;
  op->answer = static_cast<int32_t>(op->set->rank_of_member(Joins::LastJoined(*name)));
  state_.joins.Clear();
  name->ClearRound();
  completion_.Complete(op, Status::Ok(), false);
}

// ---- failures

// The backend failed after all ranks had agreed. If it failed on this rank alone, the others would
// wait for it forever.
void ProgressEngine::FailHere(Operation* op, const Status& status) {
  if (peers_.broken() && !SameEverywhere(status)) {  // the reason, and the others know it
    return completion_.Complete(op, Aborted(peers_.broken_text()), true);
  }
  std::string name = Quoted(op->name->text);
  // With other hosts, all ranks receive the disagreements and ends.
  const bool reported = !op->set->group.on_one_host() &&
                        (status.code() == Code::kMismatch || status.code() == Code::kAborted);
  completion_.Complete(op, status, true);
  if (reported || SameEverywhere(status)) return;
  EndWorld(EndCause::kFailure, Format("rank {} cannot go on in {}: {}", state_.WorldRank(self_),
                                      name, status.message()));
}

void ProgressEngine::EndWorld(EndCause cause, std::string reason) {
  LogError(reason);
  if (report_ending_) report_ending_(cause, reason);
  executor_.Abort(Aborted(reason));
  FailAll(Aborted(reason));
  outbox_.SendAbortNotice(std::move(reason));
}

void ProgressEngine::Close(std::string reason) {
  // The remaining operations fail because this rank leaves, not because of other ranks.
  completion_.Close(Aborted(std::move(reason)));
  FailAll(closed());
}

// A rank that dies right after an operation has done its part in it: if that was all that was
// missing here, the operation is complete here, too.
void ProgressEngine::FinishBroken() {
  Receive();
  AdvanceOthers(nullptr);
  if (closed().ok()) FailAll(Aborted(peers_.broken_text()));
}

// A peer that has received an announcement of this rank may be using its memory, now or later.
void ProgressEngine::FailAll(const Status& status) {
  if (closed().ok()) {
    completion_.Close(status);
    peers_.NoteFailed();
  }
  outbox_.Clear();
  running_.clear();
  state_.operations.ForEachPending(
      [&](Operation& op) { completion_.Complete(&op, status, op.sent && count_ > 1); });
}

void ProgressEngine::FailWhatNeedsLeavers() {
  for (uint32_t peer = 0; peer < count_; ++peer) {
    if (peer == self_ || !peers_.HasLeft(peer)) continue;
    Receive();
    if (!inbox_.empty(peer)) continue;
    state_.rounds.NoteGone(peer);
    state_.operations.ForEachPending([&](Operation& op) {
      const bool join = op.collective == Collective::kJoin;
      if (join && (!op.sent || !op.set->group.on_one_host())) return;
      if (!NeedsDeparted(peer, op)) return;
      outbox_.Withdraw(&op);
      std::erase(running_, &op);
      FailUnsatisfiable(&op);
    });
  }
  if (state_.rounds.any_gone() && state_.joins.self()) AbortJoin();
}

// Other hosts have to learn that this rank has joined, although its host never joins as a whole:
// they continue without it. So such a join is started like any other, and fails by their decision.
// Not before all that this rank has announced: they would complete that without it.
void ProgressEngine::AbortJoin() {
  TensorName* join = state_.names.Find(NameTable::kJoinDomain, NameTable::kJoinName);
  if (join == nullptr || join->operation == nullptr) return;
  const Operation& op = *join->operation;
  if (op.done || op.started || !op.sent || op.set->group.on_one_host()) return;
  if (!state_.rounds.Unsatisfiable(*join)) return;
  bool announced_more = false;
  state_.operations.ForEachPending([&](const Operation& other) {
    announced_more = announced_more || (&other != &op && !other.started);
  });
  if (!announced_more) Start(join);
}

bool ProgressEngine::NeedsDeparted(uint32_t peer, const Operation& op) const {
  return op.started ? executor_.Needs(op, peer) : state_.rounds.Lacks(*op.name, peer);
}

void ProgressEngine::FailUnsatisfiable(Operation* op) {
  const std::vector<uint32_t>& gone = state_.rounds.gone();
  uint32_t missing = gone.back();
  for (uint32_t peer : gone) {
    if (NeedsDeparted(peer, *op)) missing = peer;
  }
  completion_.Complete(
      op,
      Aborted(Format(
          "rank {} left the world before it took part in {}: it called shutdown or came to its end",
          state_.WorldRank(missing), Quoted(op->name->text))),
      op->started);
}

}  // namespace hvd
