#include "runtime/core/trace_log.h"

#include <string>

#include "runtime/device/dtype.h"

namespace hvd {
namespace {

// "[3, 4]"
std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace

void TraceLog::WriteSubmitted(const Operation& op, bool alone) {
  if (alone && (recorder_.wanted() & kTraceCycles) != 0) {
    recorder_.Write({.stamp = recorder_.Now(), .kind = TraceKind::kCycle});
  }
  Write(TraceKind::kSubmit, op, op.name->submissions++);
}

void TraceLog::WriteArrived(TensorName* name, uint32_t member) {
  const Collective collective = name->details[member].collective;
  if (!recorder_.Knows(name->trace)) Tell(name, collective);
  recorder_.Write({.stamp = recorder_.Now(),
                   .kind = TraceKind::kArrive,
                   .collective = static_cast<uint8_t>(collective),
                   .id = name->trace.id,
                   .rank = name->set->rank_of_member(member)});
}

void TraceLog::WriteWaitEnded(uint32_t id) {
  recorder_.Write({.stamp = recorder_.Now(), .kind = TraceKind::kWaitEnd, .id = id});
}

// "name\0dtype\0shape"; of a group, those of its first tensor.
void TraceLog::Tell(TensorName* name, Collective collective) {
  std::string text = name->text.substr(0, Recorder::kMostNameBytes - 100);
  name->bytes = 0;
  for (const CollectiveCall& call : name->calls) name->bytes += call.count * SizeOf(call.dtype);
  if (!name->own_detail.parts.empty() && !IsControl(collective)) {
    const TensorDetail& first = name->own_detail.parts.front();
    text.append(1, '\0').append(NameOf(first.dtype)).append(1, '\0').append(ShapeText(first.shape));
  }
  recorder_.Tell(&name->trace, text);
}

}  // namespace hvd
