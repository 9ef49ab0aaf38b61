// BatchTurns: the batches of a HostLeaderService that are to be executed, in their order, and the
// thread whose turn it is: the inter-host thread, or one that attends. One executes at a time.
//
// A plain state machine: its owner holds a lock around every call, and wakes who may go on.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_BATCH_TURNS_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_BATCH_TURNS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "runtime/backends/hosts/negotiator.h"
#include "runtime/backends/hosts/stepped_batch.h"
#include "runtime/backends/inter_host_comm.h"

namespace hvd {

// The next work of the inter-host thread: a batch, or the rest of one that has begun.
struct BatchTurn {
  LeaderBatch batch;                    // none where one has begun
  std::unique_ptr<SteppedBatch> begun;  // null: none has

  const LeaderBatch& whole() const { return begun == nullptr ? batch : begun->batch(); }
};

class BatchTurns {
 public:
  // `comm` outlives it.
  BatchTurns(InterHostComm& comm, uint32_t rank) : comm_(comm), rank_(rank) {}

  void Add(LeaderBatch&& batch) { batches_.push_back(std::move(batch)); }
  // A batch that no thread executes now.
  bool has_work() const { return begun_ != nullptr || !batches_.empty(); }
  bool working() const { return working_; }

  // A thread attends from now on. False: what is to be executed is the inter-host thread's, and two
  // threads that serve the same connections would only disturb each other.
  bool BeginAttending();
  bool attended() const { return attended_; }
  // True if a thread attended.
  bool EndAttending() { return std::exchange(attended_, false); }
  // Whether it comes (BeginAttending or Come) is looked at from here on.
  void Expect() { came_ = false; }
  void Come() { came_ = true; }
  bool came() const { return came_; }

  // For a thread that attends. Null: there is nothing that it may execute.
  std::unique_ptr<SteppedBatch> TakeStep();
  // Null: it is over.
  void PutBack(std::unique_ptr<SteppedBatch> batch);
  // An exchange with other hosts that it can go on with.
  bool has_begun() const { return begun_ != nullptr && !begun_->failed(); }

  // For the inter-host thread: true where there is something that no thread that attends may do, or
  // none does.
  bool MayWork() const;
  // Only where has_work.
  BatchTurn TakeTurn();
  void EndTurn() { working_ = carrying_ = false; }

 private:
  bool NextFits() const { return SteppedBatch::Fits(batches_.front(), comm_); }
  LeaderBatch TakeNext();

  InterHostComm& comm_;
  const uint32_t rank_;
  std::deque<LeaderBatch> batches_;
  // The batch before those, which a thread that attends has begun and left.
  std::unique_ptr<SteppedBatch> begun_;
  bool working_ = false;   // a thread executes a batch
  bool carrying_ = false;  // that is the inter-host thread
  bool attended_ = false, came_ = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_BATCH_TURNS_H_
