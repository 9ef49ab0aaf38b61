// CallbackQueue: the operations with a callback: those that are not done, and those that are done
// but not yet reported. One thread at a time (the engine's lock).
#ifndef HVD_RUNTIME_CORE_STATE_CALLBACK_QUEUE_H_
#define HVD_RUNTIME_CORE_STATE_CALLBACK_QUEUE_H_

#include <deque>
#include <vector>

#include "runtime/core/state/operation.h"

namespace hvd {

class CallbackQueue {
 public:
  bool has_done() const { return !done_.empty(); }

  // Gives the operation, done or not, a callback.
  void Add(Operation* op, DoneCallback callback) {
    op->callback = callback;
    if (op->done)
      done_.push_back(op);
    else
      pending_.push_back(op);
  }

  // A pending operation is done.
  void NoteDone(Operation* op) {
    std::erase(pending_, op);
    done_.push_back(op);
  }

  // The one that was done first; null if there is none.
  Operation* Pop() {
    if (done_.empty()) return nullptr;
    Operation* op = done_.front();
    done_.pop_front();
    return op;
  }

  // The oldest that is not done; null if there is none.
  Operation* oldest() const { return pending_.empty() ? nullptr : pending_.front(); }

 private:
  std::vector<Operation*> pending_;
  std::deque<Operation*> done_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_STATE_CALLBACK_QUEUE_H_
