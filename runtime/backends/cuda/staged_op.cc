#include "runtime/backends/cuda/staged_op.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/device/cuda/device_memory.h"

namespace hvd {
namespace {

bool MakesOutput(const CollectiveCall& call) {
  return call.collective == Collective::kAllgather || call.collective == Collective::kAlltoall ||
         call.collective == Collective::kReducescatter;
}

bool SendsData(const CollectiveCall& call) {
  return call.collective != Collective::kBroadcast || call.root == call.group->index;
}

}  // namespace

Result<DeviceAddress> OutputOf(CudaRoom& room, CudaDevice& device, int ordinal,
                               const CollectiveCall& call, size_t bytes) {
  if (call.output != nullptr || bytes == 0) return AddressOf(call.output);
  const Result<DeviceAddress> made = device.Allocate(bytes);
  if (!made.ok()) return made;
  call.result->made_output = reinterpret_cast<void*>(static_cast<uintptr_t>(*made));
  room.heap.Adopt(call.result->made_output, [driver = room.driver, ordinal, address = *made] {
    FreeDeviceMemory(driver, ordinal, address);
  });
  return made;
}

StagedOp::StagedOp(CudaRoom& room, CudaDevice& device, const CollectiveCall& call)
    : room_(room), device_(device), call_(call), host_call_(call) {
  host_call_.device = DeviceKind::kHost;
  host_call_.stream = nullptr;
  host_call_.result = &result_;
  host_call_.input = host_call_.output = nullptr;
}

StagedOp::~StagedOp() {
  if (staging_ != nullptr) (void)device_.ReturnStaging(staging_);
  if (result_.made_output != nullptr) room_.heap.Free(result_.made_output);
}

Status StagedOp::CopyOut(DeviceMark mark) {
  if (call_.bytes() == 0) return Status::Ok();
  const Result<std::byte*> staging = device_.BorrowStaging(call_.bytes());
  if (!staging.ok()) return staging.status();
  staging_ = *staging;
  host_call_.input = staging_;
  if (!MakesOutput(call_)) host_call_.output = staging_;
  HVD_RETURN_IF_ERROR(device_.BeginAfterMark(mark));
  if (SendsData(call_)) {
    HVD_RETURN_IF_ERROR(device_.CopyOut(staging_, AddressOf(call_.input), call_.bytes()));
  }
  const Result<DeviceTicket> ticket = device_.Record();
  if (!ticket.ok()) return ticket.status();
  copied_ = *ticket;
  return Status::Ok();
}

Result<bool> StagedOp::CopiedOut() {
  if (copied_.number == 0) return true;
  return device_.Ready(copied_);
}

Status StagedOp::CopyIn() {
  state_.reset();
  if (MakesOutput(call_)) return CopyMadeIn();
  const bool in_place =
      call_.collective == Collective::kBroadcast && SendsData(call_) && call_.input == call_.output;
  if (call_.bytes() != 0 && !in_place)
    HVD_RETURN_IF_ERROR(device_.CopyIn(AddressOf(call_.output), staging_, call_.bytes()));
  return device_.LetFollow(call_.stream);
}

// The backend below has made the output, as large as the members' parts make it.
Status StagedOp::CopyMadeIn() {
  call_.result->rows = result_.rows;
  call_.result->received_splits = std::move(result_.received_splits);
  const size_t bytes = static_cast<size_t>(result_.rows) * call_.row_bytes();
  const Result<DeviceAddress> output = OutputOf(room_, device_, call_.device_index, call_, bytes);
  if (!output.ok()) return output.status();
  if (bytes == 0) return device_.LetFollow(call_.stream);
  const Result<std::byte*> staging = device_.BorrowStaging(bytes);
  if (!staging.ok()) return staging.status();
  std::memcpy(*staging, result_.made_output, bytes);
  Status copied = device_.CopyIn(*output, *staging, bytes);
  HVD_RETURN_IF_ERROR(device_.ReturnStaging(*staging));
  return copied.ok() ? device_.LetFollow(call_.stream) : copied;
}

void StagedOp::Abandon(bool peers_may_work) {
  if (state_ != nullptr) room_.host.Abandon(std::move(state_), peers_may_work);
  if (peers_may_work) result_.made_output = nullptr;
}

}  // namespace hvd
