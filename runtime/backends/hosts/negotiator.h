// Negotiator: agrees with the other hosts which operations run, and when: sends what this process
// reports to the coordinator, takes the coordinator's messages, and is the coordinator in the
// process of world rank 0.
//
// Used by one thread at a time: the negotiation thread of the HostLeaderService, or a thread that
// waits for an operation and must not wait here (Look).
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_NEGOTIATOR_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_NEGOTIATOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/backends/hosts/coordination/coordination_link.h"
#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/coordinator.h"
#include "runtime/backends/hosts/host_leader_options.h"
#include "runtime/backends/hosts/leader_orders.h"
#include "runtime/backends/hosts/members/leader_op.h"
#include "runtime/backends/hosts/members/result_publisher.h"
#include "runtime/backends/inter_host_comm.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

// What other threads want from the negotiation thread.
struct NegotiatorOrders {
  std::vector<LeaderOpPointer> posted;
  std::vector<Coordination> outbox;  // to the coordinator, in the order of what happened
  bool leaving = false;              // this rank leaves the world
};

class NegotiatorOwner {
 public:
  virtual ~NegotiatorOwner() = default;
  // `sleeps`: this thread is going to sleep until a message comes, or until it is woken.
  virtual NegotiatorOrders TakeOrders(bool sleeps) = 0;
  // To be executed after all earlier ones.
  virtual void OnBatch(LeaderBatch&& batch) = 0;
  // No operation goes to other hosts any more. Returns the first reason, which stays.
  virtual Status OnClosed(const Status& why) = 0;
  // The work with other hosts broke off. Returns the first reason, too.
  virtual Status OnFailed(const Status& status) = 0;
};

class Negotiator {
 public:
  // All of them outlive this object.
  Negotiator(InterHostComm& comm, const HostLeaderOptions& options, ResultPublisher& publisher,
             NegotiatorOwner& owner);

  // Waits for a message, but not for long, and does what is to be done. False when this rank has
  // left, or the work with other hosts broke off: then Finish is to be called.
  bool Serve();
  // Does what is to be done now, and waits until the deadline for a message when that is nothing
  // (one in the past: waits for nothing). False when Serve has to go on, soon.
  bool Look(TimePoint deadline);
  // No decision about what is pending comes any more.
  void Finish();
  // The first rank of each host sees its neighbours leave, whether it leads anything or not.
  bool watches_neighbours() const { return watches_neighbours_; }

 private:
  bool coordinates() const { return options_.map.rank == 0; }

  Status NegotiateOnce();
  Status ReceiveNext(TimePoint deadline, bool* received);
  bool TakeOrders();
  Status CheckSent();
  Status LookOnce(TimePoint deadline);
  Status Report(NegotiatorOrders orders);
  bool NeedsServing() const;
  void SendGoodbye();
  void CloseCoordinator(TimePoint now);
  Status SendToCoordinator(Coordination&& msg);
  Status LoseCoordinator(const Status& why);
  Status SendAnswers(Coordinator::Answers answers);
  Status ReceiveMessage(InterHostMessage message);
  Status Receive(uint32_t from, Coordination&& msg);
  Status ReceiveLocal();
  void OnAbortNotice(const AbortNotice& msg);
  Status LookAround();
  Status ReportLeavers();

  const HostLeaderOptions& options_;
  ResultPublisher& publisher_;
  NegotiatorOwner& owner_;
  LeaderOrders orders_;
  CoordinationLink link_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<uint32_t> neighbours_;  // other ranks on this host that have not left
  bool watches_neighbours_ = false;
  // Found by Look, which must not do it itself: it may take time.
  Status lost_;     // the coordinator
  Status trouble_;  // any other
  bool looking_ = false;
  bool over_ = false;  // no message is left to send or to receive
  bool said_goodbye_ = false;
  TimePoint goodbye_deadline_{}, look_again_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_NEGOTIATOR_H_
