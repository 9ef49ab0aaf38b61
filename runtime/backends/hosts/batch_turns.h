// BatchTurns: a HostLeaderService's queue of batches to execute, and the thread whose turn it is:
// the inter-host thread, or one that attends. One executes at a time.
//
// A plain state machine: its owner holds a lock around every call, and wakes threads that may
// continue.
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

// The next work of the inter-host thread: a batch, or the rest of a started one.
struct BatchTurn {
  LeaderBatch batch;                    // empty if one has begun
  std::unique_ptr<SteppedBatch> begun;  // null: none has begun

  const LeaderBatch& whole() const { return begun == nullptr ? batch : begun->batch(); }
};

class BatchTurns {
 public:
  // `comm` outlives it.
  BatchTurns(InterHostComm& comm, uint32_t rank) : comm_(comm), rank_(rank) {}

  void Add(LeaderBatch&& batch) { batches_.push_back(std::move(batch)); }
  // There is a batch that no thread executes now.
  bool has_work() const { return begun_ != nullptr || !batches_.empty(); }
  bool working() const { return working_; }

  // A thread attends from now on. False: the work is the inter-host thread's, and two threads
  // serving the same connections would slow each other down.
  bool BeginAttending();
  bool attended() const { return attended_; }
  // True if a thread attended.
  bool EndAttending() { return std::exchange(attended_, false); }
  // From here on checks whether it comes (BeginAttending or Come).
  void Expect() { came_ = false; }
  void Come() { came_ = true; }
  bool came() const { return came_; }

  // For a thread that attends. Null: nothing it may execute.
  std::unique_ptr<SteppedBatch> PopStep();
  // Null: it is over.
  void PutBack(std::unique_ptr<SteppedBatch> batch);
  // An exchange with other hosts that it can continue.
  bool has_begun() const { return begun_ != nullptr && !begun_->failed(); }

  // For the inter-host thread: true if there is work that attending threads may not do, or none
  // attends.
  bool MayWork() const;
  // Only where has_work.
  BatchTurn BeginTurn();
  void EndTurn() { working_ = carrying_ = false; }

 private:
  bool NextFits() const { return SteppedBatch::Fits(batches_.front(), comm_); }
  LeaderBatch PopNext();

  InterHostComm& comm_;
  const uint32_t rank_;
  std::deque<LeaderBatch> batches_;
  // The batch before those, begun and left by a thread that attends.
  std::unique_ptr<SteppedBatch> begun_;
  bool working_ = false;   // a thread executes a batch
  bool carrying_ = false;  // that is the inter-host thread
  bool attended_ = false, came_ = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_BATCH_TURNS_H_
