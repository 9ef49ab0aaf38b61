// TraceLog: what the engine tells the recorder about its operations. With nobody who asks for more,
// one event per operation, when it is over. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_TRACE_LOG_H_
#define HVD_RUNTIME_CORE_TRACE_LOG_H_

#include <cstdint>

#include "runtime/core/name_table.h"
#include "runtime/core/operation.h"
#include "timeline/recorder.h"

namespace hvd {

class TraceLog {
 public:
  // Writes nothing where the recorder is off.
  explicit TraceLog(Recorder recorder) : recorder_(recorder) {}

  // `alone`: no other operation of this rank was in flight.
  void Submitted(const Operation& op, bool alone) {
    if (recorder_.wants_all()) [[unlikely]]
      WriteSubmitted(op, alone);
  }
  // The announcement of a peer: an index in name->set->group.local.
  void Arrived(TensorName* name, uint32_t member) {
    if (recorder_.wants_all()) [[unlikely]]
      WriteArrived(name, member);
  }
  void Started(const Operation& op) {
    if (recorder_.wants_all()) [[unlikely]]
      Write(TraceKind::kStart, op, 0);
  }
  // Before the operation forgets its name.
  void Done(const Operation& op, const Status& status) {
    if (recorder_.on()) Write(TraceKind::kDone, op, static_cast<uint32_t>(status.code()));
  }
  // A thread of the application begins to wait for an operation that is not done. Returns what
  // WaitEnded is to be given; 0: nothing is to be ended.
  uint32_t WaitBegun(const Operation& op) {
    if (!recorder_.wants_all() || op.done) return 0;
    Write(TraceKind::kWaitBegin, op, 0);
    return op.name->trace.id;
  }
  void WaitEnded(uint32_t wait) {
    if (wait != 0) WriteWaitEnded(wait);
  }
  bool wants_all() const { return recorder_.wants_all(); }

 private:
  void Write(TraceKind kind, const Operation& op, uint32_t status) {
    TensorName& name = *op.name;
    if (!recorder_.Knows(name.trace)) Tell(&name, op.collective);
    TraceRecord record;
    record.stamp = recorder_.Now();
    record.kind = kind;
    record.collective = static_cast<uint8_t>(op.collective);
    record.id = name.trace.id;
    record.bytes = name.bytes;
    record.rank = static_cast<uint32_t>(op.set->group.size());
    record.status = status;
    recorder_.Write(record);
  }
  void WriteSubmitted(const Operation& op, bool alone);
  void WriteArrived(TensorName* name, uint32_t member);
  void WriteWaitEnded(uint32_t id);
  void Tell(TensorName* name, Collective collective);

  Recorder recorder_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_TRACE_LOG_H_
