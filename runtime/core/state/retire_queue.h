// RetireQueue: operations that are done and not retired yet.
//
// A name is in flight until a later call of the application has looked for duplicates, also when
// the work was done at once. So a program sees the same, no matter which rank came last and what
// the runtime thread did meanwhile. One thread at a time (the engine's lock).
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

  // The operation is done: its name is kept until it is retired.
  void Add(Operation* op) {
    TensorName* name = std::exchange(op->name, nullptr);
    name->operation = nullptr;
    name->kept = true;
    op->kept_name = name;
    done_.push_back(op);
  }

  // Retires the operations that were submitted up to this call, which frees their names. Those that
  // other threads have submitted since keep theirs until the next call of such a thread.
  void RetireUpTo(uint64_t call) {
    if (!done_.empty()) RetireSome(call);
  }

  // Retires this one, which is done, if it is not retired yet.
  void Retire(Operation* op);

 private:
  void RetireSome(uint64_t call);

  NameTable& names_;
  std::vector<Operation*> done_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STATE_RETIRE_QUEUE_H_
