// HostLeaderService: the part of this process in the work of all hosts. Reports operations that are
// ready here, takes orders from the coordinator (and is the coordinator, in the process of world
// rank 0), and carries the batches out in their order.
//
// Two threads: `talk` says and hears words, `cross` does the collectives with the other leaders.
// Both begin when this process first leads an operation or hears a word. Post, Withdraw and Abort
// may come from any thread and never block.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_SERVICE_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_SERVICE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/hosts/coordinator.h"
#include "runtime/backends/hosts/leader_op.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/device/shared_heap.h"

namespace hvd {

// Says why, and aborts.
void EndProcess(const std::string& why);

struct HostLeaderOptions {
  HostMap map;
  // How long nothing may move between leaders. For a InterHostComm that is not told of losses; the
  // others wait as long as the ranks themselves do: until the world breaks, or a stall is longer
  // than the user allows.
  Duration idle_limit = kNoLimit;
  // How long the launcher may take to say why a connection broke; afterwards the connection's own
  // words are the cause.
  Duration cause_grace = std::chrono::seconds(2);
  // How long a rank that leaves waits for the coordinator's answer.
  Duration goodbye = std::chrono::seconds(5);
  // How long a neighbour that is in the middle of a chunk is waited for when its operation has
  // failed. Afterwards the sum that it works on is left to it for good, and the failure is told.
  Duration chunk_limit = std::chrono::seconds(2);
  // How long the work with other hosts may hold on to a caller's memory once all of it is aborted.
  // Afterwards the caller cannot have its memory back, and nobody may go on: `end_process` is told
  // why, and does not return.
  Duration let_go_limit = std::chrono::seconds(10);
  std::function<void(const std::string& why)> end_process = EndProcess;
  CompareDetailsOf compare;
  CoordinatorOptions coordinator;
  // Wakes every rank on this host that sleeps. From any thread.
  std::function<void()> wake_host;
  // The sentence why the world of this host is broken, once it is.
  std::function<std::optional<std::string>()> broken;
  // This rank of the world, on this host, has said goodbye. May be empty.
  std::function<bool(uint32_t rank)> has_left;
};

class HostLeaderService {
 public:
  // Both outlive the conductor.
  HostLeaderService(InterHostComm& comm, SharedHeap& heap, HostLeaderOptions options);
  ~HostLeaderService() { Leave(); }
  HostLeaderService(const HostLeaderService&) = delete;

  // All parts have started here. The result comes on the parts' boards; the ticket is for Withdraw.
  uint64_t Post(std::shared_ptr<LeaderOp> op);
  // The operation failed here; what others have begun with it is still carried out.
  void Withdraw(uint64_t ticket, std::string why);
  // The caller of a part that goes straight takes its memory back; nobody uses it afterwards. What
  // has not begun is carried out with a copy; what has ends the work with other hosts, and is
  // waited for: as long as a piece takes, and no longer than let_go_limit.
  void LetGo(LeaderOp& op, LeaderTensor& part);
  // Nothing goes on; the first reason stays.
  void Abort(const Status& why);
  // Why the work with other hosts broke off; ok while it goes on, and after a goodbye of whichever
  // side.
  Status failure();
  // Another leader on this host saw it break off.
  void NoteFailure(const Status& why);
  // Says goodbye, finishes what others count on, and ends the threads. Afterwards the InterHostComm
  // is not used any more.
  void Leave();

 private:
  using OpPointer = std::shared_ptr<LeaderOp>;
  struct Batch {
    RunMessage msg;
    std::vector<OpPointer> ops;
  };

  void StartThreads();  // with the lock held
  bool AbortIfBroken();
  bool coordinates() const { return options_.map.rank == 0; }

  // In the talk thread.
  void Negotiate();
  Status NegotiateOnce();
  bool TakeOrders();
  void SendGoodbye();
  Status SendToCoordinator(Coordination msg);
  Status LoseCoordinator(const Status& why);
  Status Send(uint32_t to, Coordination msg);
  Status Transmit(uint32_t to, const Coordination& msg);
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

  // In the cross thread.
  void Work();
  void Carry(const Batch& batch);
  bool GivenUp();
  void Note(const Batch& batch, LeaderOp::Use use);

  Status FirstCause(const Status& status);
  void Die(const Status& status);
  Status closed();
  void PublishResult(LeaderTensor& part);
  bool StopSum(LeaderTensor& part, TimePoint deadline);
  void PublishFailure(const LeaderOp& op, const Status& status);

  InterHostComm& comm_;
  SharedHeap& heap_;
  const HostLeaderOptions options_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<OpPointer> posted_;
  std::deque<Coordination> outbox_;  // to the coordinator, in the order of what happened
  std::deque<Batch> batches_;
  uint64_t next_ticket_ = 1;
  Status closed_;          // not ok: no operation goes to other hosts any more
  Status failure_;         // the first
  bool leaving_ = false;   // Leave has begun
  bool stopping_ = false;  // the cross thread ends when no batch is left

  // Of the talk thread alone.
  std::map<uint64_t, OpPointer> tickets_;
  std::map<uint32_t, std::string> partial_;  // messages that come in several pieces, by sender
  std::deque<std::pair<uint32_t, Coordination>> here_;  // words of this process to itself
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<uint32_t> neighbours_;  // other ranks on this host that have not left
  bool over_ = false;                 // there is nothing more to say or to hear
  bool said_goodbye_ = false;
  TimePoint goodbye_deadline_{}, look_again_{};

  std::thread negotiation_, work_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_SERVICE_H_
