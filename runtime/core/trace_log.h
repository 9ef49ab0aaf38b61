// TraceLog: writes the engine's operations into the trace ring. Unless more is requested, an
// operation is one event, written when it completes. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_TRACE_LOG_H_
#define HVD_RUNTIME_CORE_TRACE_LOG_H_

#include <cstdint>

#include "runtime/base/clock.h"
#include "runtime/core/state/name_table.h"
#include "runtime/core/state/operation.h"
#include "runtime/trace/recorder.h"

namespace hvd {

class TraceLog {
 public:
  // Writes nothing if the recorder is off.
  explicit TraceLog(Recorder recorder) : recorder_(recorder) {}

  // Before the backend sees the operation: enables recording of its data activities if wanted.
  void Admitted(Operation* op) {
    op->activities.reset();
    if (recorder_.wants_all()) [[unlikely]]
      op->activities.emplace(recorder_.clock());
  }
  // `alone`: no other operation of this rank was in flight.
  void Submitted(Operation* op, bool alone) {
    const uint32_t round = op->name->submissions++;  // even if not traced: the same on all ranks
    if (recorder_.wants_all()) [[unlikely]]
      WriteSubmitted(op, round, alone);
  }
  // A peer's announcement has arrived; `member`: its index in name->set->group.local.
  void Arrived(TensorName* name, uint32_t member) {
    if (recorder_.wants_all()) [[unlikely]]
      WriteArrived(name, member);
  }
  void Started(const Operation& op) {
    if (recorder_.wants_all()) [[unlikely]]
      Write(TraceKind::kStart, op, 0);
  }
  // Call before the operation releases its name.
  void Done(Operation* op, const Status& status) {
    if (!recorder_.on()) return;
    uint16_t algorithm = 0;
    if (op->activities) [[unlikely]] {
      WriteActivities(op);
      algorithm = TraceRecord::PartOf(TraceActivity::kNone, op->activities->algorithm());
    }
    Write(TraceKind::kDone, *op, static_cast<uint32_t>(status.code()), algorithm);
    if (status.ok()) recorder_.CountOperation(op->name->bytes);
  }
  // A whole operation in one event; not while wants_waits().
  void Passed(TensorName* name) {
    if (!recorder_.on()) return;
    const Collective collective = name->own_detail.collective;
    Write(TraceKind::kDone, name, collective, name->set->group.size(), 0);
    recorder_.CountOperation(name->bytes);
  }
  // Whether to count how often this rank was the last one of its host to submit.
  bool CountsLast(const Operation& op) const {
    return recorder_.wants_waits() && op.set->group.local_to_group.size() > 1;
  }
  void CountLast() { recorder_.CountLast(); }
  // An optimizer step is complete.
  void Step() {
    if (!recorder_.on()) return;
    recorder_.CountStep();
    Mark(TraceKind::kStep);
  }
  // A commit is complete.
  void Committed() {
    if (recorder_.on()) Mark(TraceKind::kCommit);
  }
  void Link(uint32_t rank, uint64_t bytes, uint32_t busy_us);
  // The operation has stalled long enough for a warning.
  void Stalled(const Operation& op, Duration waited);
  // Pass to WaitEnded.
  struct Wait {
    bool open = false;
    uint32_t id = 0;  // of the event; 0: none
  };
  // An application thread begins to wait for an operation that is not done.
  Wait WaitBegun(const Operation& op);
  void WaitEnded(Wait wait) {
    if (wait.open) EndWait(wait.id);
  }
  bool wants_waits() const { return recorder_.wants_waits(); }

 private:
  void Write(TraceKind kind, const Operation& op, uint32_t status, uint16_t part = 0) {
    Write(kind, op.name, op.collective, op.set->group.size(), status, part);
  }
  void Write(TraceKind kind, TensorName* name, Collective collective, uint32_t members,
             uint32_t status, uint16_t part = 0) {
    if (!recorder_.HasName(name->trace)) WriteName(name, collective);
    TraceRecord record;
    record.stamp = recorder_.Now();
    record.kind = kind;
    record.collective = static_cast<uint8_t>(collective);
    record.part = part;
    record.id = name->trace.id;
    record.bytes = name->bytes;
    record.rank = members;
    record.status = status;
    recorder_.Write(record);
  }
  // The activities since the last call.
  void WriteActivities(Operation* op);
  void WriteSubmitted(Operation* op, uint32_t round, bool alone);
  void WriteArrived(TensorName* name, uint32_t member);
  void EndWait(uint32_t id);
  void Mark(TraceKind kind) {
    if (recorder_.wants_all()) recorder_.Write({.stamp = recorder_.Now(), .kind = kind});
  }
  void WriteName(TensorName* name, Collective collective);

  Recorder recorder_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_TRACE_LOG_H_
