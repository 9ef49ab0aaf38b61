// HostLeaderService: this process's part in the work between hosts. Reports operations that are
// ready on this host, receives batches from the coordinator (and is the coordinator in the process
// of world rank 0), and executes them in order.
//
// Two threads: the negotiation thread sends and receives coordination messages, the inter-host
// thread runs the collectives with the other leaders. Both start when this process first leads an
// operation or receives a message. Post, Withdraw and Abort may come from any thread and never
// block.
//
// A thread that waits for an operation does the non-blocking work of both (Attend), since a thread
// switch costs more than a small message. The two stand back then, and continue when that thread
// rests or has not called for a moment.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_SERVICE_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_SERVICE_H_

#include <condition_variable>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/attendance.h"
#include "runtime/backends/hosts/batch_turns.h"
#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/host_leader_options.h"
#include "runtime/backends/hosts/members/leader_op.h"
#include "runtime/backends/hosts/members/result_publisher.h"
#include "runtime/backends/hosts/message_sleep.h"
#include "runtime/backends/hosts/negotiator.h"
#include "runtime/backends/hosts/stepped_batch.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/mutex.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

class HostLeaderService final : public Attendance, private NegotiatorOwner {
 public:
  // Both outlive the service.
  HostLeaderService(InterHostComm& comm, SharedHeap& heap, HostLeaderOptions options);
  ~HostLeaderService() override { Leave(); }
  HostLeaderService(const HostLeaderService&) = delete;

  // Takes an operation whose parts have all started here. The result arrives in the ResultStatus of
  // each part; the ticket is for Withdraw.
  uint64_t Post(std::shared_ptr<LeaderOp> op);
  // The operation failed here. Work that others have begun on it still runs to its end.
  void Withdraw(uint64_t ticket, std::string why);
  // The caller of a `straight` part takes its memory back; no thread uses it after this call. A
  // part that has not begun will use a copy. For a started one this call waits, at most
  // last_exchange. Then it ends the work with other hosts and waits for the current piece, at most
  // let_go_limit.
  void LetGo(LeaderOp& op, LeaderTensor& part);
  // Attendance, for an operation led here. Does nothing if the InterHostComm has no steps.
  void Attend() override;
  bool AttendUntil(TimePoint deadline) override;
  void Rest() override;
  // Ends the work with other hosts; the first reason stays.
  void Abort(const Status& why);
  // Why the work with other hosts failed. Ok while it continues, and after either side has left.
  Status failure();
  // Another leader on this host saw it fail.
  void NoteFailure(const Status& why);
  // Announces that this rank leaves, finishes the batches that others count on, and ends the
  // threads. The InterHostComm is not used afterwards.
  void Leave();

 private:
  void StartThreads() HVD_REQUIRES(mutex_);
  bool AbortIfBroken();

  // NegotiatorOwner; OnFailed also when a batch fails.
  NegotiatorRequests PopRequests(bool sleeps) override;
  void OnBatch(LeaderBatch&& batch) override;
  Status OnClosed(const Status& why) override;
  Status OnFailed(const Status& status) override;

  // In the negotiation thread.
  void Negotiate();
  void Yield();

  // In a thread that attends.
  bool BeginAttending();
  bool TryNegotiation(bool patiently) HVD_TRY_ACQUIRE(true, negotiating_);
  void StepBatches(TimePoint deadline);
  std::unique_ptr<SteppedBatch> PopStep();
  void PutBack(std::unique_ptr<SteppedBatch> batch);

  // In the inter-host thread.
  void Work();

  // In either.
  void Conclude(const LeaderBatch& batch, const Status& status);

  InterHostComm& comm_;
  SharedHeap& heap_;
  const HostLeaderOptions options_;

  MessageSleep sleep_;
  ResultPublisher publisher_;

  Mutex mutex_;
  std::condition_variable changed_;
  std::vector<LeaderOpPointer> posted_ HVD_GUARDED_BY(mutex_);
  // Messages to the coordinator, in order of events.
  std::vector<Coordination> outbox_ HVD_GUARDED_BY(mutex_);
  BatchTurns turns_ HVD_GUARDED_BY(mutex_);
  std::condition_variable summoned_;  // for the negotiation thread
  std::condition_variable released_;  // for LetGo
  uint64_t next_ticket_ HVD_GUARDED_BY(mutex_) = 1;
  Status closed_ HVD_GUARDED_BY(mutex_);         // not ok: no more operations for other hosts
  Status failure_ HVD_GUARDED_BY(mutex_);        // the first
  bool leaving_ HVD_GUARDED_BY(mutex_) = false;  // Leave has begun
  // The inter-host thread ends when no batch is left.
  bool stopping_ HVD_GUARDED_BY(mutex_) = false;

  Mutex negotiating_;  // taken before mutex_
  Negotiator negotiator_ HVD_GUARDED_BY(negotiating_);

  std::thread negotiation_, work_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_SERVICE_H_
