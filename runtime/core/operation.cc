#include "runtime/core/operation.h"

namespace hvd {

Operation* OperationTable::Add() {
  if (free_.empty()) {
    slots_.push_back(std::make_unique<Operation>());
    slots_.back()->slot = static_cast<uint32_t>(slots_.size() - 1);
    free_.push_back(slots_.back()->slot);
  }
  Operation* operation = slots_[free_.back()].get();
  free_.pop_back();
  ++operation->generation;
  operation->in_use = true;
  operation->sent = operation->started = operation->done = false;
  operation->status = Status::Ok();
  operation->waiting_since = operation->warned_at = TimePoint{};
  return operation;
}

Operation* OperationTable::Find(Operation::Handle handle) const {
  const uint64_t slot = (handle & 0xffffffff) - 1;
  if (slot >= slots_.size()) return nullptr;
  Operation* operation = slots_[slot].get();
  return operation->in_use && operation->generation == handle >> 32 ? operation : nullptr;
}

void OperationTable::Release(Operation* operation) {
  operation->in_use = false;
  operation->name = nullptr;
  free_.push_back(operation->slot);
}

}  // namespace hvd
