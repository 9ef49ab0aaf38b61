#include "runtime/backends/hosts/batch_turns.h"

namespace hvd {

bool BatchTurns::BeginAttending() {
  const bool large = begun_ == nullptr && !batches_.empty() && !NextFits();
  if (carrying_ || large) return false;
  attended_ = came_ = true;
  return true;
}

std::unique_ptr<SteppedBatch> BatchTurns::PopStep() {
  std::unique_ptr<SteppedBatch> batch;
  if (working_ || !has_work()) return batch;
  if (begun_ != nullptr) {
    if (!begun_->failed()) batch = std::move(begun_);
  } else if (NextFits()) {
    batch = std::make_unique<SteppedBatch>(PopNext(), comm_, rank_);
  }
  working_ = batch != nullptr;
  return batch;
}

void BatchTurns::PutBack(std::unique_ptr<SteppedBatch> batch) {
  working_ = false;
  begun_ = std::move(batch);
}

bool BatchTurns::MayWork() const {
  if (working_ || !has_work()) return false;
  if (!attended_) return true;
  return begun_ != nullptr ? begun_->failed() : !NextFits();
}

BatchTurn BatchTurns::BeginTurn() {
  working_ = carrying_ = true;
  BatchTurn turn;
  turn.begun = std::move(begun_);
  if (turn.begun == nullptr) turn.batch = PopNext();
  return turn;
}

LeaderBatch BatchTurns::PopNext() {
  LeaderBatch batch = std::move(batches_.front());
  batches_.pop_front();
  for (const LeaderOpPointer& op : batch.ops) op->use = LeaderOp::Use::kInFlight;
  return batch;
}

}  // namespace hvd
