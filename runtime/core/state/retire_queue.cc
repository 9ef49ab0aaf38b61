#include "runtime/core/state/retire_queue.h"

#include <cstddef>
#include <utility>

namespace hvd {

void RetireQueue::RetireSome(uint64_t call) {
  size_t left = 0;
  for (Operation* op : done_) {
    if (op->call > call) {
      done_[left++] = op;
      continue;
    }
    op->retired = true;
    names_.Retire(std::exchange(op->kept_name, nullptr));
  }
  done_.resize(left);
}

void RetireQueue::Retire(Operation* op) {
  if (op->retired) return;
  std::erase(done_, op);
  op->retired = true;
  names_.Retire(std::exchange(op->kept_name, nullptr));
}

}  // namespace hvd
