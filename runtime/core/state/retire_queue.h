// RetireQueue: operations that are done but not retired.
//
// A name stays in flight until a later call of the application has checked for duplicates, even if
// the work completed immediately. So a program sees the same behaviour no matter which rank came
// last and what the runtime thread did meanwhile. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_STATE_RETIRE_QUEUE_H_
#define HVD_RUNTIME_CORE_STATE_RETIRE_QUEUE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/core/state/name_table.h"
#include "runtime/core/state/operation.h"

namespace hvd {

class RetireQueue {
 public:
  explicit RetireQueue(NameTable& names) : names_(names) {}

  // The operation is done: its name stays taken until it is retired.
  void Add(Operation* op) {
    TensorName* name = std::exchange(op->name, nullptr);
    name->operation = nullptr;
    name->kept = true;
    op->kept_name = name;
    done_.push_back(op);
  }

  // Retires the operations submitted up to this call, which frees their names. Those submitted
  // later by other threads keep their names until a later call.
  void RetireUpTo(uint64_t call) {
    if (!done_.empty()) RetireSome(call);
  }

  // Retires this operation, which is done, unless it is retired already.
  void Retire(Operation* op);

 private:
  void RetireSome(uint64_t call);

  NameTable& names_;
  std::vector<Operation*> done_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STATE_RETIRE_QUEUE_H_
