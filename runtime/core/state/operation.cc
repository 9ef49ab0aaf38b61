#include "runtime/core/state/operation.h"

#include <string>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

std::vector<int64_t> OutputShape(const OperationTensor& part) {
  std::vector<int64_t> shape(part.shape.begin(), part.shape.begin() + part.dimensions);
  const Collective collective = part.call.collective;
  const bool other_rows = collective == Collective::kAllgather ||
                          collective == Collective::kAlltoall ||
                          collective == Collective::kReducescatter;
  if (other_rows) shape[0] = part.result.rows;
  return shape;
}

}  // namespace

Status WorldIsOver(Operation::Handle handle) {
  return Aborted(
      Format("handle {} is of a world that was shut down: hvd.shutdown() was called on this rank",
             handle));
}

OperationResult TakeResult(Operation* operation) {
  OperationResult result;
  if (operation->collective == Collective::kJoin) result.last_joined_rank = operation->answer;
  if (operation->collective == Collective::kAddProcessSet) result.process_set = operation->answer;
  if (operation->collective == Collective::kBarrier || IsControl(operation->collective)) {
    return result;
  }
  for (OperationTensor& part : operation->parts) {
    result.outputs.push_back({std::exchange(part.result.made_output, nullptr), OutputShape(part)});
  }
  result.received_splits = std::move(operation->parts[0].result.received_splits);
  return result;
}

Operation* OperationTable::Add() {
  if (free_.empty()) {
    slots_.push_back(std::make_unique<Operation>());
    slots_.back()->slot = static_cast<uint32_t>(slots_.size() - 1);
    free_.push_back(slots_.back()->slot);
  }
  Operation* operation = slots_[free_.back()].get();
  free_.pop_back();
  operation->generation = ++given_;
  operation->in_use = true;
  operation->sent = operation->started = operation->done = operation->retired = false;
  operation->status = Status::Ok();
  operation->callback = {};
  operation->message_sent = 0;
  operation->answer = -1;
  operation->waiting_since = operation->warned_at = TimePoint{};
  return operation;
}

Operation* OperationTable::Find(Operation::Handle handle) const {
  const uint64_t slot = (handle & 0xffffffff) - 1;
  if (slot >= slots_.size()) return nullptr;
  Operation* operation = slots_[slot].get();
  return operation->in_use && operation->generation == handle >> 32 ? operation : nullptr;
}

Status OperationTable::UnknownHandle(Operation::Handle handle) const {
  const uint32_t generation = Operation::GenerationOf(handle);
  if (generation != 0 && generation <= given_before_) return WorldIsOver(handle);
  return InvalidArgument(Format("unknown handle {}", handle));
}

void OperationTable::Release(Operation* operation) {
  operation->in_use = false;
  free_.push_back(operation->slot);
}

}  // namespace hvd
