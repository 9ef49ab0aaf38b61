#include "runtime/backends/cuda/order/agreed_turns.h"

#include "runtime/base/text/format.h"

namespace hvd {

Status AgreedTurns::Add(const Agreement& agreed, CudaOp* op) {
  if (!failure_.ok()) return failure_;
  Batch& batch = batches_[agreed.turn];
  if (batch.ops.empty()) batch.ops.resize(agreed.batch_size, nullptr);
  const bool sound = agreed.turn >= next_ && !batch.begun && agreed.place < batch.ops.size() &&
                     batch.ops[agreed.place] == nullptr;
  if (!sound) {
    Fail(Internal(Format("an operation was agreed for turn {}, place {}, which is taken or over",
                         agreed.turn, agreed.place)));
    return failure_;
  }
  batch.ops[agreed.place] = op;
  ++batch.known;
  return Status::Ok();
}

AgreedTurns::Batch* AgreedTurns::Next() {
  const auto next = batches_.find(next_);
  if (next == batches_.end()) return nullptr;
  const bool complete = next->second.begun || next->second.known == next->second.ops.size();
  return complete ? &next->second : nullptr;
}

void AgreedTurns::Pass() {
  batches_.erase(next_);
  ++next_;
}

}  // namespace hvd
