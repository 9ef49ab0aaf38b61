// Negotiator: agrees with the other hosts which operations run, and when: sends what this process
// reports to the coordinator, takes the coordinator's messages, and is the coordinator in the
// process of world rank 0.
//
// Used by one thread, the negotiation thread of the HostLeaderService; only the constructor runs
// elsewhere.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_NEGOTIATOR_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_NEGOTIATOR_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "runtime/backends/hosts/coordination_link.h"
#include "runtime/backends/hosts/coordination_messages.h"
#include "runtime/backends/hosts/coordinator.h"
#include "runtime/backends/hosts/host_leader_options.h"
#include "runtime/backends/hosts/leader_op.h"
#include "runtime/backends/hosts/result_publisher.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

using LeaderOpPointer = std::shared_ptr<LeaderOp>;

// Operations that the leaders execute together.
struct LeaderBatch {
  RunMessage msg;
  std::vector<LeaderOpPointer> ops;
};

// What other threads want from the negotiation thread.
struct NegotiatorOrders {
  std::deque<LeaderOpPointer> posted;
  std::deque<Coordination> outbox;  // to the coordinator, in the order of what happened
  bool leaving = false;             // this rank leaves the world
};

class NegotiatorOwner {
 public:
  virtual ~NegotiatorOwner() = default;
  virtual NegotiatorOrders TakeOrders() = 0;
  // To be executed after all earlier ones.
  virtual void OnBatch(LeaderBatch batch) = 0;
  // No operation goes to other hosts any more. Returns the first reason, which stays.
  virtual Status OnClosed(const Status& why) = 0;
  // The work with other hosts broke off.
  virtual void OnFailed(const Status& status) = 0;
};

class Negotiator {
 public:
  // All of them outlive this object.
  Negotiator(InterHostComm& comm, const HostLeaderOptions& options, ResultPublisher& publisher,
             NegotiatorOwner& owner);

  // Until this rank has left, or the work with other hosts broke off.
  void Run();
  // The first rank of each host sees its neighbours leave, whether it leads anything or not.
  bool watches_neighbours() const { return watches_neighbours_; }

 private:
  bool coordinates() const { return options_.map.rank == 0; }

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

  const HostLeaderOptions& options_;
  ResultPublisher& publisher_;
  NegotiatorOwner& owner_;
  std::map<uint64_t, LeaderOpPointer> tickets_;
  CoordinationLink link_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<uint32_t> neighbours_;  // other ranks on this host that have not left
  bool watches_neighbours_ = false;
  bool over_ = false;  // no message is left to send or to receive
  bool said_goodbye_ = false;
  TimePoint goodbye_deadline_{}, look_again_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_NEGOTIATOR_H_
