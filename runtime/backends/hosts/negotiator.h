// Negotiator: agrees with the other hosts which operations run, and when: sends this process's
// reports to the coordinator, handles the coordinator's messages, and is the coordinator in the
// process of world rank 0.
//
// Used by one thread at a time: the negotiation thread of the HostLeaderService, or a thread that
// waits for an operation and must not block here (Poll).
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
struct NegotiatorRequests {
  std::vector<LeaderOpPointer> posted;
  std::vector<Coordination> outbox;  // to the coordinator, in order of events
  bool leaving = false;              // this rank leaves the world
};

class NegotiatorOwner {
 public:
  virtual ~NegotiatorOwner() = default;
  // `sleeps`: this thread is about to sleep until a message comes or it is woken.
  virtual NegotiatorRequests PopRequests(bool sleeps) = 0;
  // To be executed after all earlier ones.
  virtual void OnBatch(LeaderBatch&& batch) = 0;
  // No more operations for other hosts. Returns the first reason, which is kept.
  virtual Status OnClosed(const Status& why) = 0;
  // The work with other hosts failed. Returns the first reason, too.
  virtual Status OnFailed(const Status& status) = 0;
};

class Negotiator {
 public:
  // All of them outlive this object.
  Negotiator(InterHostComm& comm, const HostLeaderOptions& options, ResultPublisher& publisher,
             NegotiatorOwner& owner);

  // Waits briefly for a message and does all pending work. False when this rank has left or the
  // work with other hosts failed: then call Finish.
  bool Serve();
  // Does all pending work; if there is none, waits for a message until the deadline (a past one:
  // does not wait). False if Serve has to continue soon.
  bool Poll(TimePoint deadline);
  // No more decisions about pending operations will come.
  void Finish();
  // The first rank of each host watches for neighbours that leave, whether it leads anything or
  // not.
  bool watches_neighbours() const { return watches_neighbours_; }

 private:
  bool coordinates() const { return options_.map.rank == 0; }

  Status NegotiateOnce();
  Status ReceiveNext(TimePoint deadline, bool* received);
  bool HandleRequests();
  Status CheckSent();
  Status PollOnce(TimePoint deadline);
  Status Report(NegotiatorRequests requests);
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
  Status CheckPeriodically();
  Status ReportLeavers();

  const HostLeaderOptions& options_;
  ResultPublisher& publisher_;
  NegotiatorOwner& owner_;
  LeaderOrders orders_;
  CoordinationLink link_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<uint32_t> neighbours_;  // other ranks on this host that have not left
  bool watches_neighbours_ = false;
  // Found by Poll, which must not handle it: that may take time.
  Status lost_;     // the coordinator
  Status trouble_;  // any other
  bool polling_ = false;
  bool over_ = false;  // no more messages to send or receive
  bool sent_goodbye_ = false;
  TimePoint goodbye_deadline_{}, next_check_{};
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_NEGOTIATOR_H_
