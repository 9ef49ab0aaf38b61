#include "runtime/core/host_attendance.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hvd {
namespace {

// Total over all tensors of an operation.
constexpr size_t kSmallBytes = 256 * 1024;

}  // namespace

bool HostAttendance::IsFor(const Operation& op) const {
  if (op.set->group.on_one_host()) return false;
  size_t bytes = 0;
  for (const OperationTensor& part : op.parts) {
    if (part.call.device != DeviceKind::kHost) return false;
    bytes += part.call.bytes();
  }
  return bytes < kSmallBytes || NothingElsePends();
}

bool HostAttendance::Attend(Operation* op) {
  if (!op->started || !IsFor(*op)) return false;
  Attendance* attendance = backend_.attendance();
  if (attendance == nullptr) return false;
  attended_ = attendance;
  attendance->Attend();
  progress_.Advance(op);
  return op->done;
}

Attendance* HostAttendance::AlonePending(const Operation& op) {
  return op.started && IsFor(op) && NothingElsePends() ? backend_.attendance() : nullptr;
}

bool HostAttendance::StaysFor(const Operation& op) const {
  return !op.started && IsFor(op) && NothingElsePends();
}

bool HostAttendance::NothingElsePends() const {
  uint32_t pending = 0;
  state_.operations.ForEachPending([&](Operation&) { ++pending; });
  return pending == 1;
}

void HostAttendance::Rest() {
  if (Attendance* attended = std::exchange(attended_, nullptr)) attended->Rest();
}

}  // namespace hvd
