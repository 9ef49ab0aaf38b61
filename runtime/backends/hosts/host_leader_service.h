// HostLeaderService: the part of this process in the work of all hosts. Reports operations that are
// ready on this host, receives batches from the coordinator (and is the coordinator, in the process
// of world rank 0), and executes the batches in their order.
//
// Two threads: the negotiation thread sends and receives coordination messages, the inter-host
// thread runs the collectives with the other leaders. Both start when this process first leads an
// operation or receives a message. Post, Withdraw and Abort may come from any thread and never
// block.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_SERVICE_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_SERVICE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/hosts/coordination_link.h"
#include "runtime/backends/hosts/coordinator.h"
#include "runtime/backends/hosts/leader_op.h"
#include "runtime/backends/hosts/result_publisher.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/mutex.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

// Logs the reason and aborts the process.
void EndProcess(const std::string& why);

struct HostLeaderOptions {
  HostMap map;
  // How long no byte may move between leaders. For an InterHostComm that does not notice lost
  // peers; the others wait as long as the ranks themselves do: until the world breaks, or a stall
  // is longer than the user allows.
  Duration idle_limit = kNoLimit;
  // How long the launcher may take to report why a connection broke. Afterwards the error of the
  // connection itself is the cause.
  Duration cause_grace = std::chrono::seconds(2);
  // How long a rank that leaves waits for the coordinator's answer.
  Duration goodbye = std::chrono::seconds(5);
  // How long the leader waits for a rank of its host that is in the middle of a chunk of a failed
  // operation. Afterwards it never uses the memory of that sum again, and reports the failure.
  Duration chunk_limit = std::chrono::seconds(2);
  // How long the work with other hosts may keep a caller's memory after all of it was aborted.
  // Afterwards the caller cannot get its memory back and must not go on: the service calls
  // `end_process` with the reason, which does not return.
  Duration let_go_limit = std::chrono::seconds(10);
  std::function<void(const std::string& why)> end_process = EndProcess;
  CompareDetailsOf compare;
  CoordinatorOptions coordinator;
  // Wakes every rank on this host that sleeps. From any thread.
  std::function<void()> wake_host;
  // The reason why the world of this host is broken, once it is.
  std::function<std::optional<std::string>()> broken;
  // This rank of the world, on this host, has left. May be empty.
  std::function<bool(uint32_t rank)> has_left;
};

class HostLeaderService {
 public:
  // Both outlive the service.
  HostLeaderService(InterHostComm& comm, SharedHeap& heap, HostLeaderOptions options);
  ~HostLeaderService() { Leave(); }
  HostLeaderService(const HostLeaderService&) = delete;

  // All parts have started here. The result arrives in the ResultStatus of each part; the ticket is
  // for Withdraw.
  uint64_t Post(std::shared_ptr<LeaderOp> op);
  // The operation failed here. Work that others have begun with it still runs to its end.
  void Withdraw(uint64_t ticket, std::string why);
  // The caller of a `straight` part takes its memory back; no thread uses it after this call. A
  // part that has not begun will run with a copy. One that has begun ends the work with other
  // hosts, and this call waits for it: as long as a piece takes, and no longer than let_go_limit.
  void LetGo(LeaderOp& op, LeaderTensor& part);
  // Ends the work with other hosts; the first reason stays.
  void Abort(const Status& why);
  // Why the work with other hosts broke off. Ok while it goes on, and after either side has left.
  Status failure();
  // Another leader on this host saw it break off.
  void NoteFailure(const Status& why);
  // Announces that this rank leaves, finishes the batches that others count on, and ends the
  // threads. Afterwards the InterHostComm is not used any more.
  void Leave();

 private:
  using OpPointer = std::shared_ptr<LeaderOp>;
  struct Batch {
    RunMessage msg;
    std::vector<OpPointer> ops;
  };

  void StartThreads() HVD_REQUIRES(mutex_);
  bool AbortIfBroken();
  bool coordinates() const { return options_.map.rank == 0; }

  // In the negotiation thread.
  void Negotiate();
  Status NegotiateOnce();
  bool TakeOrders();
  void SendGoodbye();
  Status SendToCoordinator(Coordination msg);
  Status LoseCoordinator(const Status& why);
  Status SendAnswers(Coordinator::Answers answers);
  Status ReceiveMessage(const InterHostMessage& message);
  Status Receive(uint32_t from, Coordination msg);
  Status ReceiveLocal();
  Status OnRun(RunMessage msg);
  void OnEnd(const EndMessage& msg);
  void OnWait(const WaitMessage& msg);
  void OnAbortNotice(const AbortNotice& msg);
  Status LookAround();
  Status ReportLeavers();
  void GiveUpTickets();

  // In the inter-host thread.
  void Work();
  void Carry(const Batch& batch);
  bool GivenUp();
  void Note(const Batch& batch, LeaderOp::Use use);

  Status FirstCause(const Status& status);
  void Die(const Status& status);
  Status closed();

  InterHostComm& comm_;
  SharedHeap& heap_;
  const HostLeaderOptions options_;

  ResultPublisher publisher_;

  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<OpPointer> posted_ HVD_GUARDED_BY(mutex_);
  // To the coordinator, in the order of what happened.
  std::deque<Coordination> outbox_ HVD_GUARDED_BY(mutex_);
  std::deque<Batch> batches_ HVD_GUARDED_BY(mutex_);
  uint64_t next_ticket_ HVD_GUARDED_BY(mutex_) = 1;
  Status closed_ HVD_GUARDED_BY(mutex_);   // not ok: no operation goes to other hosts any more
  Status failure_ HVD_GUARDED_BY(mutex_);  // the first
  bool leaving_ HVD_GUARDED_BY(mutex_) = false;  // Leave has begun
  // The inter-host thread ends when no batch is left.
  bool stopping_ HVD_GUARDED_BY(mutex_) = false;

  // Used by the negotiation thread only.
  std::map<uint64_t, OpPointer> tickets_;
  CoordinationLink link_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<uint32_t> neighbours_;  // other ranks on this host that have not left
  bool over_ = false;                 // no message is left to send or to receive
  bool said_goodbye_ = false;
  TimePoint goodbye_deadline_{}, look_again_{};

  std::thread negotiation_, work_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_SERVICE_H_
