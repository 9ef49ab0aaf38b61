#include "runtime/core/express.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "runtime/base/relax.h"
#include "runtime/core/request/message.h"

namespace hvd {
namespace {

// As many polls without a pause as in other waits.
constexpr uint32_t kEagerLooks = 50;

// Bytes that a member sends with its announcement of an exchange.
size_t PayloadOf(const CollectiveCall& call, uint32_t member) {
  const bool silent = call.collective == Collective::kBroadcast && member != call.root;
  return silent ? 0 : call.bytes();
}

// Every member sends as much as this rank, and as much to each.
bool AreEqual(const TensorName& name) {
  if (name.own_detail.parts.empty()) return true;
  const TensorDetail& own = name.own_detail.parts[0];
  const uint32_t self = name.set->group.local_index;
  for (uint32_t m = 0; m < name.details.size(); ++m) {
    if (m != self && name.details[m].parts[0] != own) return false;
  }
  return std::ranges::all_of(own.splits, [&](int64_t rows) { return rows == own.splits[0]; });
}

bool MayTakeExpress(const TensorName& name, uint32_t peers, const Backend& backend) {
  const Group& group = name.set->group;
  return group.on_one_host() && group.local_size() == peers && name.calls.size() == 1 &&
         name.calls[0].device == DeviceKind::kHost && AreEqual(name) &&
         backend.IsExchange(name.calls[0]);
}

}  // namespace

// ---- the beginning

bool Express::Begin(const RequestSpec& spec, uint64_t call) {
  if (spec.process_set != 0 || spec.unnamed || !spec.group.empty() || !IsQuiet()) return false;
  TensorName* name = state_.names.NextOwn(/*domain=*/0, spec.name);
  if (name == nullptr || !CanTake(name, spec) || !Announce(*name, spec)) return false;
  state_.names.Follow(name);
  name_ = name;
  spec_ = &spec;
  call_ = call;
  seen_ = 0;
  peers_.NoteSubmitted(static_cast<uint32_t>(spec.collective), name->text);
  return true;
}

// Nothing is in flight on this rank that a round has to take into account.
bool Express::IsQuiet() const {
  return progress_.closed().ok() && progress_.idle() && !progress_.has_unsent() &&
         !state_.joins.any() && !state_.rounds.any_gone() && !trace_.wants_waits() &&
         !peers_.broken();
}

// The name was agreed before, this round has not begun anywhere, and it needs only one exchange.
bool Express::CanTake(TensorName* name, const RequestSpec& spec) const {
  using enum TensorName::Express;
  if (!name->agreed || !name->own_detail_known || name->own_number == TensorName::kNoNumber)
    return false;
  if (name->operation != nullptr || name->kept || name->arrived != 0) return false;
  if (name->express == kUnknown) {
    name->express = MayTakeExpress(*name, peers_.size(), backend_) ? kYes : kNo;
  }
  const Group& group = name->set->group;
  return name->express == kYes && Describes(name->own_detail, spec, group.size()) &&
         CheckRepeated(spec, group).ok() &&
         (spec.tensor.output != nullptr || name->calls[0].count == 0);
}

// False if there is no room in the stream.
bool Express::Announce(const TensorName& name, const RequestSpec& spec) {
  if (peers_.size() == 1) return true;
  const CollectiveCall& call = name.calls[0];
  const size_t bytes = PayloadOf(call, call.group->local_index);
  BufferDescriptor descriptor;
  descriptor.payload = {static_cast<const std::byte*>(spec.tensor.input), bytes};
  const OutgoingRequest request{name.own_number, {}, &descriptor, {}};
  const std::span<std::byte> record = peers_.Reserve(BytesOf(request));
  if (record.empty()) return false;
  Write(request, record);
  peers_.Commit();
  return true;
}

// ---- from there to the end

Operation::Handle Express::Wait(Mutex& mutex, WaitPolicy policy, bool* looked) {
  Operation::Handle handle = 0;
  fallback_ = &handle;
  if (PollRound(policy.spins)) return handle;
  for (uint32_t i = 0; i < policy.yields; ++i) {
    mutex.unlock();
    ::sched_yield();
    mutex.lock();
    if (handle != 0 || PollRound(0)) return handle;
  }
  FallBack();
  *looked = true;
  return handle;
}

// True when the round is over or fell back to the normal path.
bool Express::PollRound(uint32_t spins) {
  for (uint32_t spin = 0;; ++spin) {
    const Observation observed = Observe();
    if (observed == Observation::kOther) BecomeOperation();
    if (observed != Observation::kWaits) return true;
    if (spin >= spins) return false;
    if (spin >= kEagerLooks) Relax();
  }
}

Express::Observation Express::Observe() {
  if (peers_.broken()) return Observation::kOther;
  const CollectiveCall& call = name_->calls[0];
  const Group& group = *call.group;
  for (; seen_ < group.local_size(); ++seen_) {
    BufferDescriptor& descriptor = name_->descriptors[seen_];
    const size_t bytes = PayloadOf(call, seen_);
    if (seen_ == group.local_index) {
      descriptor.payload = {static_cast<const std::byte*>(spec_->tensor.input), bytes};
      continue;
    }
    switch (progress_.inbox().PeekFor(group.local[seen_], *name_, bytes, &descriptor.payload)) {
      case Inbox::NextMessage::kNothing: return Observation::kWaits;
      case Inbox::NextMessage::kOther: return Observation::kOther;
      case Inbox::NextMessage::kExpected: break;
    }
  }
  return Combine() ? Observation::kDone : Observation::kOther;
}

// All members have announced the round, and their payloads are in the streams. False if the backend
// refuses it, as it will again on the normal path.
bool Express::Combine() {
  CollectiveCall& call = name_->calls[0];
  call.input = spec_->tensor.input;
  call.output = spec_->tensor.output;
  const Result<bool> complete = backend_.Start(call, nullptr, {name_->descriptors, {}, {}});
  call.input = call.output = nullptr;
  if (!complete.ok() || !*complete) return false;
  const Group& group = *call.group;
  for (uint32_t m = 0; m < group.local_size(); ++m) {
    if (m != group.local_index) progress_.inbox().Consume(group.local[m]);
  }
  TensorName* name = std::exchange(name_, nullptr);
  ++name->submissions;
  trace_.Passed(name);
  state_.last_finished.Note(name->text);
  return true;
}

void Express::BecomeOperation() {
  TensorName* name = std::exchange(name_, nullptr);
  Operation* op = admission_.Adopt(name, *spec_, call_);
  trace_.Admitted(op);
  const Status prepared = executor_.Prepare(op, *spec_, /*caller_waits=*/false);  // no matter here
  admission_.Commit(op, *spec_);
  trace_.Submitted(op, op->set->in_flight == 1);
  *fallback_ = op->handle();
  // An exchange is not expected to fail; but the peers know of this round.
  if (!prepared.ok()) return progress_.EndWorld(EndCause::kFailure, prepared.message());
  if (peers_.size() == 1) return progress_.Launch(op, *spec_);  // no one else announces it
  op->sent = true;
}

}  // namespace hvd
