#include "runtime/backends/hosts/negotiator.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr uint32_t kCoordinator = 0;
constexpr Duration kCheckInterval = std::chrono::milliseconds(100);

}  // namespace

Negotiator::Negotiator(InterHostComm& comm, const HostLeaderOptions& options,
                       ResultPublisher& publisher, NegotiatorOwner& owner)
    : options_(options),
      publisher_(publisher),
      owner_(owner),
      orders_(options.map.rank, publisher,
              [this](LeaderBatch&& batch) { owner_.OnBatch(std::move(batch)); }),
      link_(comm, options.map.rank, options.idle_limit) {
  const HostMap& map = options_.map;
  if (coordinates()) {
    coordinator_ = std::make_unique<Coordinator>(map, options_.compare, options_.coordinator);
  }
  for (uint32_t r = 0; r < map.host_of.size(); ++r) {
    if (r != map.rank && map.host_of[r] == map.here()) neighbours_.push_back(r);
  }
  watches_neighbours_ = neighbours_.empty() || neighbours_[0] > map.rank;
}

bool Negotiator::Serve() {
  if (over_) return false;
  if (Status talked = NegotiateOnce(); !talked.ok()) {
    (void)owner_.OnFailed(talked);
    over_ = true;
  }
  return !over_;
}

Status Negotiator::NegotiateOnce() {
  orders_.PublishFailures();
  if (Status lost = std::exchange(lost_, Status::Ok()); !lost.ok()) {
    if (Status ended = LoseCoordinator(lost); !ended.ok() || over_) return ended;
  }
  if (!trouble_.ok()) return std::exchange(trouble_, Status::Ok());
  if (!HandleRequests()) return Status::Ok();
  if (Status heard = ReceiveLocal(); !heard.ok() || over_) return heard;
  bool received = false;
  Status status = ReceiveNext(SteadyNow() + kCheckInterval, &received);
  if (status.ok()) status = ReceiveLocal();
  if (status.ok()) status = CheckSent();
  return status.ok() ? CheckPeriodically() : status;
}

// Detects messages that were sent earlier and did not arrive.
Status Negotiator::CheckSent() {
  Status sent = link_.Flush(TimePoint{});
  if (sent.ok() || sent.code() == Code::kInProgress) return Status::Ok();
  return coordinates() ? sent : LoseCoordinator(sent);
}

bool Negotiator::Poll(TimePoint deadline) {
  if (NeedsServing()) return false;
  polling_ = true;
  Status polled = PollOnce(deadline);
  polling_ = false;
  if (lost_.ok()) trouble_ = std::move(polled);
  return !NeedsServing();
}

bool Negotiator::NeedsServing() const {
  return over_ || !lost_.ok() || !trouble_.ok() || orders_.has_failures();
}

// Ends with the message that completes an operation: another poll takes as long as a small sum.
Status Negotiator::PollOnce(TimePoint deadline) {
  const bool waits = deadline > TimePoint{};
  const uint64_t before = orders_.settled();
  NegotiatorRequests requests = owner_.PopRequests(waits);
  const bool quiet = requests.outbox.empty() && !link_.has_local();
  HVD_RETURN_IF_ERROR(Report(std::move(requests)));
  HVD_RETURN_IF_ERROR(ReceiveLocal());
  TimePoint until = quiet ? deadline : TimePoint{};
  for (bool received = true; received && !over_ && orders_.settled() == before;)
    HVD_RETURN_IF_ERROR(ReceiveNext(std::exchange(until, TimePoint{}), &received));
  return CheckPeriodically();
}

Status Negotiator::Report(NegotiatorRequests requests) {
  for (LeaderOpPointer& op : requests.posted) orders_.reported().Add(std::move(op));
  for (Coordination& msg : requests.outbox) {
    HVD_RETURN_IF_ERROR(SendToCoordinator(std::move(msg)));
  }
  return orders_.UseEarlyOffer();
}

// The coordinator survives the loss of one rank; the others do not survive the loss of the
// coordinator.
Status Negotiator::ReceiveNext(TimePoint deadline, bool* received) {
  const uint32_t speaker = coordinates() ? kAnyLeader : kCoordinator;
  Result<InterHostMessage> message =
      polling_ ? link_.Await(speaker, deadline) : link_.Receive(speaker, deadline);
  *received = message.ok();
  if (message.ok()) {
    HVD_RETURN_IF_ERROR(ReceiveMessage(std::move(*message)));
    return ReceiveLocal();
  }
  if (message.status().code() == Code::kInProgress) return Status::Ok();
  return coordinates() ? message.status() : LoseCoordinator(message.status());
}

// Sends what other threads have queued. False if this thread is to end.
bool Negotiator::HandleRequests() {
  NegotiatorRequests requests = owner_.PopRequests(/*sleeps=*/true);
  const bool leaving = requests.leaving;
  if (Status sent = Report(std::move(requests)); !sent.ok()) {
    (void)owner_.OnFailed(sent);
    over_ = true;
    return false;
  }
  if (leaving) SendGoodbye();
  return !over_;
}

// Others may rely on batches issued before they learn that this rank leaves, so the coordinator
// decides when it may go.
void Negotiator::SendGoodbye() {
  const TimePoint now = SteadyNow();
  if (!sent_goodbye_) {
    sent_goodbye_ = true;
    goodbye_deadline_ = now + options_.goodbye;
    // A neighbour may have left before, and be the reason why this rank leaves.
    Status sent = ReportLeavers();
    if (sent.ok()) sent = ReceiveLocal();
    if (sent.ok() && !coordinates()) sent = SendToCoordinator(LeaveMessage{options_.map.rank});
    if (!sent.ok()) over_ = true;
  }
  if (coordinates()) return CloseCoordinator(now);
  if (now >= goodbye_deadline_) over_ = true;
}

// Completes first what another leader may have used already.
void Negotiator::CloseCoordinator(TimePoint now) {
  const std::string why = "rank 0, which arranges the work of all hosts, left the world";
  Coordinator::Answers answers;
  const bool waits = !over_ && coordinator_->RecallEarly(why, &answers) && now < goodbye_deadline_;
  if (!waits) coordinator_->Close(why, &answers);
  std::erase_if(answers, [&](const auto& answer) { return answer.to == options_.map.rank; });
  for (Coordinator::Answer& answer : answers) (void)link_.Send(answer.to, std::move(answer.msg));
  over_ = !waits;
}

Status Negotiator::SendToCoordinator(Coordination&& msg) {
  Status sent = link_.Send(kCoordinator, std::move(msg));
  return sent.ok() || coordinates() ? sent : LoseCoordinator(sent);
}

// It may have sent an abort notice before it left. A rank that leaves as well misses nothing; once
// its neighbours see it leave, it may get no notice.
Status Negotiator::LoseCoordinator(const Status& why) {
  if (polling_) return lost_ = why;  // Serve continues here
  const TimePoint deadline = SteadyNow() + options_.cause_grace;
  while (!over_) {
    Result<InterHostMessage> message = link_.Receive(kCoordinator, deadline);
    if (!message.ok() && message.status().code() == Code::kInProgress && SteadyNow() < deadline) {
      continue;  // woken
    }
    if (!message.ok()) break;
    if (Status heard = ReceiveMessage(std::move(*message)); !heard.ok()) return heard;
  }
  over_ = over_ || sent_goodbye_ || options_.has_left(options_.map.rank);
  if (over_) return Status::Ok();
  Result<InterHostMessage> anything = link_.Receive(kAnyLeader, TimePoint{});
  const bool aborted = !anything.ok() && anything.status().code() == Code::kAborted;
  if (aborted) return anything.status();  // not the coordinator alone
  return Aborted(
      "rank 0, which arranges the work of all hosts, left the world or is out of reach: " +
      why.message());
}

Status Negotiator::SendAnswers(Coordinator::Answers answers) {
  for (Coordinator::Answer& answer : answers) {
    if (Status sent = link_.Send(answer.to, std::move(answer.msg)); !sent.ok()) return sent;
  }
  return Status::Ok();
}

Status Negotiator::ReceiveMessage(InterHostMessage message) {
  Result<std::optional<CoordinationLink::Received>> received = link_.Assemble(std::move(message));
  if (!received.ok()) return received.status();
  if (!received->has_value()) return Status::Ok();
  return Receive((*received)->first, std::move((*received)->second));
}

Status Negotiator::ReceiveLocal() {
  while (std::optional<CoordinationLink::Received> received = link_.PopLocal()) {
    HVD_RETURN_IF_ERROR(Receive(received->first, std::move(received->second)));
  }
  return Status::Ok();
}

Status Negotiator::Receive(uint32_t from, Coordination&& msg) {
  auto* abort_notice = std::get_if<AbortNotice>(&msg);
  if (abort_notice == nullptr && !LeaderOrders::IsOrder(msg)) {
    if (coordinator_ == nullptr) return Internal("this rank is no coordinator");
    Coordinator::Answers answers;
    Status heard = coordinator_->Receive(from, std::move(msg), SteadyNow(), &answers);
    return heard.ok() ? SendAnswers(std::move(answers)) : heard;
  }
  if (from != kCoordinator) {
    return Internal(
        Format("rank {} sent a message that only the coordinator, rank 0, may send", from));
  }
  if (abort_notice != nullptr) {
    OnAbortNotice(*abort_notice);
    return Status::Ok();
  }
  std::optional<Coordination> reply;
  HVD_RETURN_IF_ERROR(orders_.Execute(std::move(msg), &reply));
  if (!polling_) orders_.PublishFailures();
  return reply ? SendToCoordinator(std::move(*reply)) : Status::Ok();
}

void Negotiator::OnAbortNotice(const AbortNotice& msg) {
  over_ = true;
  if (!msg.why.empty()) (void)owner_.OnClosed(Aborted(msg.why));
}

Status Negotiator::CheckPeriodically() {
  const TimePoint now = SteadyNow();
  if (now < next_check_) return Status::Ok();
  next_check_ = now + kCheckInterval;
  if (coordinator_ != nullptr) {
    Coordinator::Answers answers;
    for (const std::string& sentence : coordinator_->Stalls(now, &answers)) LogWarning(sentence);
    HVD_RETURN_IF_ERROR(SendAnswers(std::move(answers)));
    if (Status received = ReceiveLocal(); !received.ok()) return received;
  }
  if (sent_goodbye_) return Status::Ok();
  Status sent = ReportLeavers();
  return sent.ok() ? ReceiveLocal() : sent;
}

Status Negotiator::ReportLeavers() {
  std::vector<uint32_t> gone;
  std::erase_if(neighbours_, [&](uint32_t rank) {
    if (options_.has_left(rank)) gone.push_back(rank);
    return !gone.empty() && gone.back() == rank;
  });
  for (uint32_t rank : gone) {
    if (Status sent = SendToCoordinator(LeaveMessage{rank}); !sent.ok()) return sent;
  }
  return Status::Ok();
}

void Negotiator::Finish() {
  (void)link_.Flush(SteadyNow() + options_.goodbye);
  orders_.PublishFailures();  // one poll may have received both these and the end
  const Status why = owner_.OnClosed(Aborted("the world was shut down"));
  for (const LeaderOpPointer& op : owner_.PopRequests(/*sleeps=*/false).posted)
    publisher_.PublishFailure(*op, why);
  orders_.FailAll(why);
}

}  // namespace hvd
