#include "runtime/core/trace_log.h"

#include <string>

#include "runtime/core/request/request_text.h"
#include "runtime/device/dtype.h"

namespace hvd {

// The name was recorded before, or is recorded here.
void TraceLog::WriteActivities(Operation* op) {
  TensorName& name = *op->name;
  if (!op->activities->all().empty() && !recorder_.HasName(name.trace))
    WriteName(&name, op->collective);
  for (const ActivityNote& note : op->activities->all()) {
    recorder_.Write({.stamp = note.stamp,
                     .kind = TraceKind::kActivity,
                     .collective = note.collective,
                     .part = TraceRecord::PartOf(note.activity, note.algorithm),
                     .id = name.trace.id,
                     .bytes = note.bytes,
                     .rank = note.tensors});
  }
  op->activities->Clear();
}

void TraceLog::WriteSubmitted(Operation* op, uint32_t round, bool alone) {
  if (op->activities) WriteActivities(op);
  if (alone && (recorder_.wanted() & kTraceCycles) != 0) {
    recorder_.Write({.stamp = recorder_.Now(), .kind = TraceKind::kCycle});
  }
  Write(TraceKind::kSubmit, *op, round, static_cast<uint16_t>(op->set->instance));
}

void TraceLog::WriteArrived(TensorName* name, uint32_t member) {
  const Collective collective = name->details[member].collective;
  if (!recorder_.HasName(name->trace)) WriteName(name, collective);
  recorder_.Write({.stamp = recorder_.Now(),
                   .kind = TraceKind::kArrive,
                   .collective = static_cast<uint8_t>(collective),
                   .id = name->trace.id,
                   .rank = name->set->rank_of_member(member)});
}

TraceLog::Wait TraceLog::WaitBegun(const Operation& op) {
  if (op.done) return {};
  recorder_.BeginWait();
  if (!recorder_.wants_all()) return {true, 0};
  Write(TraceKind::kWaitBegin, op, 0);
  return {true, op.name->trace.id};
}

void TraceLog::EndWait(uint32_t id) {
  recorder_.EndWait();
  if (id != 0) recorder_.Write({.stamp = recorder_.Now(), .kind = TraceKind::kWaitEnd, .id = id});
}

void TraceLog::Link(uint32_t rank, uint64_t bytes, uint32_t busy_us) {
  if (!recorder_.wants_all()) return;
  recorder_.Write({.stamp = recorder_.Now(),
                   .kind = TraceKind::kLink,
                   .bytes = bytes,
                   .rank = rank,
                   .status = busy_us});
}

// Rare, and in a job that may end: also recorded if full tracing is off.
void TraceLog::Stalled(const Operation& op, Duration waited) {
  if (!recorder_.on()) return;
  TensorName& name = *op.name;
  if (!recorder_.HasName(name.trace)) WriteName(&name, op.collective);
  recorder_.Write({.stamp = recorder_.Now(),
                   .kind = TraceKind::kStall,
                   .collective = static_cast<uint8_t>(op.collective),
                   .id = name.trace.id,
                   .bytes = static_cast<uint64_t>(waited.count())});
}

// "name\0dtype\0shape"; of a group, those of its first tensor.
void TraceLog::WriteName(TensorName* name, Collective collective) {
  std::string text(std::string_view(name->text).substr(0, kMostNameBytes - 100));
  name->bytes = 0;
  for (const CollectiveCall& call : name->calls) name->bytes += call.count * SizeOf(call.dtype);
  if (!name->own_detail.parts.empty() && !IsControl(collective)) {
    const TensorDetail& first = name->own_detail.parts.front();
    text.append(1, '\0').append(NameOf(first.dtype)).append(1, '\0').append(ShapeText(first.shape));
  }
  recorder_.WriteName(&name->trace, text);
}

}  // namespace hvd
