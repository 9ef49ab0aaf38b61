#include "runtime/backends/hosts/coordination/coordinator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/backends/hosts/coordination/early_offer.h"
#include "runtime/backends/rank_list.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

Status LeftBefore(uint32_t rank, const std::string& name) {
  return Aborted(Format(
      "rank {} left the world before it took part in '{}': it called shutdown or came to its end",
      rank, name));
}

bool MembersMayHaveJoined(Collective collective) {
  return collective == Collective::kAllreduce || collective == Collective::kBarrier;
}

std::vector<uint32_t> RanksUpTo(size_t size) {
  std::vector<uint32_t> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

}  // namespace

Coordinator::Coordinator(const HostMap& map, CompareDetailsOf compare, CoordinatorOptions options)
    : map_(map),
      world_(RanksUpTo(map.host_of.size())),
      compare_(std::move(compare)),
      options_(options),
      order_(map_, options_) {}

Status Coordinator::Receive(uint32_t from, Coordination&& msg, TimePoint now, Answers* answers) {
  if (from >= map_.host_of.size()) return InvalidArgument("a message of an unknown rank");
  heard_of_.insert(from);
  if (auto* ready = std::get_if<ReadyMessage>(&msg)) {
    OnReady(from, std::move(*ready), now, answers);
  } else if (auto* agree = std::get_if<AgreeMessage>(&msg)) {
    OnReady(from, std::move(agree->ready), now, answers);
  } else if (auto* offer = std::get_if<OfferMessage>(&msg)) {
    OnReady(from, std::move(offer->ready), now, answers);
  } else if (auto* withdraw = std::get_if<WithdrawMessage>(&msg)) {
    OnWithdraw(from, *withdraw, answers);
  } else if (auto* join = std::get_if<JoinMessage>(&msg)) {
    OnJoin(from, *join, answers);
  } else if (auto* leave = std::get_if<LeaveMessage>(&msg)) {
    OnLeave(from, leave->rank, answers);
  } else if (auto* done = std::get_if<DoneMessage>(&msg)) {
    order_.OnDone(done->number, answers);
  } else if (auto* recalled = std::get_if<RecalledMessage>(&msg)) {
    OnRecalled(from, *recalled, answers);
  } else {
    return InvalidArgument(
        Format("rank {} sent a message that only the coordinator, rank 0, may send", from));
  }
  return Status::Ok();
}

// Those of the operation's process set.
std::span<const uint32_t> Coordinator::RanksOf(const ReadyMessage& msg) const {
  return msg.ranks.empty() ? world_ : msg.ranks;
}

void Coordinator::OnReady(uint32_t from, ReadyMessage&& msg, TimePoint now, Answers* answers) {
  if (CompleteByEarlyOffer(from, &msg, answers)) return;
  const uint32_t host = map_.host_of[from];
  for (uint32_t rank : RanksOf(msg)) {
    if (rank < map_.host_of.size() && !left_.contains(rank)) continue;
    Status why =
        rank < map_.host_of.size()
            ? LeftBefore(rank, msg.name)
            : InvalidArgument("the process set of '" + msg.name + "' has a rank outside the world");
    answers->push_back({from, EndMessage{msg.ticket, std::move(why), 0}});
    return;
  }
  auto at = waiting_.try_emplace(Key{msg.domain, msg.ranks, msg.name}).first;
  // The first round that this host has not reported.
  auto operation = std::ranges::find_if(
      at->second, [&](const PendingOperation& round) { return !round.HasReported(host); });
  if (operation == at->second.end()) {
    const std::span<const uint32_t> ranks = RanksOf(msg);
    operation = at->second.insert(
        operation, PendingOperation{{ranks.begin(), ranks.end()}, {}, now, now, {}, {}});
  }
  auto place = std::find_if(operation->reports.begin(), operation->reports.end(),
                            [&](const LeaderReport& report) { return report.host > host; });
  if (!operation->failed.ok())
    answers->push_back({from, EndMessage{msg.ticket, operation->failed, 0}});
  operation->reports.emplace(place, host, from, std::move(msg));
  if (!IssueIfComplete(at, operation, answers)) OfferEarly(at, operation, answers);
}

// Members on hosts that have not reported, other than those that have joined.
std::vector<uint32_t> Coordinator::MissingRanks(const PendingOperation& operation) const {
  std::vector<uint32_t> missing;
  for (uint32_t rank : operation.ranks) {
    if (!operation.HasReported(map_.host_of[rank]) && !HasJoined(rank)) missing.push_back(rank);
  }
  return missing;
}

// False: not all hosts are ready.
bool Coordinator::IssueIfComplete(Waiting::iterator at, Rounds::iterator operation,
                                  Answers* answers) {
  if (!MissingRanks(*operation).empty()) return false;
  // A rank that joined after they were counted has announced it before, or is about to.
  if (operation->Participants(map_) < operation->first().participants) return false;
  if (IsEarly(*operation)) {  // the leader that it was offered to does not lead it
    Recall(Status::Ok(), answers);
    if (!early_->failure.ok()) Fail(*operation, early_->failure, answers);
    operation->failed = early_->failure;
    early_.reset();
  }
  const std::string name = std::get<std::string>(at->first);
  PendingOperation complete = Remove(at, operation);
  if (!complete.failed.ok()) return true;
  Status verdict = VerdictOf(complete, name);
  if (!verdict.ok() || complete.first().collective == Collective::kBarrier) {
    Fail(complete, verdict, answers);
    return true;
  }
  order_.Add(std::move(complete), answers);
  return true;
}

PendingOperation Coordinator::Remove(Waiting::iterator at, Rounds::iterator operation) {
  PendingOperation taken = std::move(*operation);
  at->second.erase(operation);
  if (at->second.empty()) waiting_.erase(at);
  return taken;
}

// ---- early offers

void Coordinator::OfferEarly(Waiting::iterator at, Rounds::iterator operation, Answers* answers) {
  const bool first_round = operation == at->second.begin();
  if (early_ || !operation->failed.ok() || !first_round || operation->reports.size() != 1) return;
  LeaderReport& report = operation->reports[0];
  const std::optional<uint32_t> to = EarlyReceiver(map_, report.leader, report.msg);
  if (!to || HasJoined(*to)) return;
  MessageBytes sum = std::exchange(report.msg.sum, {});
  early_ = Early{at, operation, *to, sum.size(), {}};
  answers->emplace_back(*to, EarlyOfferMessage{report.msg});
  std::get<EarlyOfferMessage>(answers->back().msg).ready.sum = std::move(sum);
}

// True if this report of a leader that got an early offer completes the operation: that leader
// knows it as well, so only the first one is notified. It runs whatever else has happened
// meanwhile, and is never delayed.
bool Coordinator::CompleteByEarlyOffer(uint32_t from, ReadyMessage* msg, Answers* answers) {
  if (!early_ || early_->to != from) return false;
  const LeaderReport& first = early_->operation->reports[0];
  if (!HaveSameName(first.msg, *msg)) return false;
  if (!Completes(first.msg, early_->bytes, *msg, msg->sum.size())) {
    GiveBackEarly(answers);
    return false;
  }
  const size_t members = early_->operation->ranks.size();
  answers->emplace_back(first.leader,
                        SumsMessage{EarlyRun(0, first.msg.ticket, std::move(msg->sum), members)});
  Remove(early_->at, early_->operation);
  early_.reset();
  return true;
}

// Keeps the first failure.
void Coordinator::Recall(Status failure, Answers* answers) {
  if (!early_->failure.ok()) return;
  answers->push_back({early_->to, RecallMessage{early_->operation->first().ticket}});
  early_->failure = std::move(failure);
}

void Coordinator::OnRecalled(uint32_t from, const RecalledMessage& msg, Answers* answers) {
  const bool ours = early_ && early_->to == from && !early_->failure.ok() &&
                    early_->operation->first().ticket == msg.ticket;
  if (ours) GiveBackEarly(answers);
}

// The leader does not use the offer, so the operation may fail again, and does if a failure was
// requested.
void Coordinator::GiveBackEarly(Answers* answers) {
  const Early early = *std::exchange(early_, std::nullopt);
  if (early.failure.ok()) return;
  Fail(*early.operation, early.failure, answers);
  early.operation->failed = early.failure;
  const auto gone = [&](uint32_t rank) { return left_.contains(rank); };
  if (std::ranges::any_of(early.operation->ranks, gone)) Remove(early.at, early.operation);
}

bool Coordinator::RecallEarly(const std::string& why, Answers* answers) {
  if (early_) Recall(Aborted(why), answers);
  return early_.has_value();
}

// ---- verdicts

// The first host's failure, or how the hosts disagree, or which ranks have joined although the
// operation cannot be executed without them.
Status Coordinator::VerdictOf(const PendingOperation& operation, const std::string& name) const {
  std::vector<HostDetail> details;
  for (const LeaderReport& report : operation.reports) {
    if (!report.msg.failure.ok()) return report.msg.failure;
    details.push_back({report.leader, report.msg.detail});
  }
  const auto differs = [&](const HostDetail& d) { return d.detail != details[0].detail; };
  if (std::any_of(details.begin(), details.end(), differs)) {
    if (Status same = compare_(name, details); !same.ok()) return same;
  }
  const size_t parts = operation.first().parts.size();
  for (const LeaderReport& report : operation.reports) {
    if (report.msg.parts.size() == parts) continue;
    return Internal("hosts disagree about the number of tensors in '" + name + "'");
  }
  return JoinedVerdict(operation, name);
}

Status Coordinator::JoinedVerdict(const PendingOperation& operation,
                                  const std::string& name) const {
  const Collective collective = operation.first().collective;
  if (MembersMayHaveJoined(collective)) return Status::Ok();
  // A host's report names the ranks that take part there; ranks of it that have joined by now did
  // so later.
  std::vector<uint32_t> gone;
  for (uint32_t rank : operation.ranks) {
    if (HasJoined(rank) && !operation.HasReported(map_.host_of[rank])) gone.push_back(rank);
  }
  for (const LeaderReport& report : operation.reports) {
    gone.insert(gone.end(), report.msg.joined.begin(), report.msg.joined.end());
  }
  if (gone.empty()) return Status::Ok();
  std::sort(gone.begin(), gone.end());
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  return Mismatch("'" + name + "' needs " + RankList(gone) + ", which " +
                  (gone.size() == 1 ? "has" : "have") +
                  " joined; only allreduce and barrier go on without ranks that called hvd.join()");
}

void Coordinator::Fail(const PendingOperation& operation, const Status& status, Answers* answers) {
  if (!operation.failed.ok()) return;
  for (const LeaderReport& report : operation.reports) {
    if (left_.contains(report.leader)) continue;  // it may be gone already
    answers->push_back({report.leader, EndMessage{report.msg.ticket, status, 0}});
  }
}

// A ticket that is running has to run to its end: the others rely on it. An operation that was
// withdrawn has also failed for hosts that report it later: a leader that has joined by then is not
// neutral in it.
void Coordinator::OnWithdraw(uint32_t from, const WithdrawMessage& msg, Answers* answers) {
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    for (auto operation = at->second.begin(); operation != at->second.end(); ++operation) {
      const bool ours = std::any_of(
          operation->reports.begin(), operation->reports.end(), [&](const LeaderReport& report) {
            return report.leader == from && report.msg.ticket == msg.ticket;
          });
      if (!ours) continue;
      if (IsEarly(*operation)) return Recall(Aborted(msg.why), answers);
      Fail(*operation, Aborted(msg.why), answers);
      if (operation->failed.ok()) operation->failed = Aborted(msg.why);
      return;
    }
  }
}

bool Coordinator::HasJoined(uint32_t rank) const {
  return joined_.contains(rank) || failed_joins_.contains(rank);
}

// After a rank has left, a join fails; but ranks that have joined submit nothing more, so the
// others continue without them.
void Coordinator::OnJoin(uint32_t from, const JoinMessage& msg, Answers* answers) {
  if (!left_.empty()) {
    answers->push_back({from, EndMessage{msg.ticket, LeftBefore(*left_.begin(), "join"), 0}});
    failed_joins_.insert(from);
    return IssueAllComplete(answers);
  }
  joined_[from] = msg.ticket;
  IssueAllComplete(answers);
  if (joined_.size() < map_.host_of.size()) return;
  for (auto [rank, ticket] : joined_) {
    answers->push_back({rank, EndMessage{ticket, Status::Ok(), msg.last_here}});
  }
  joined_.clear();
}

// With one more joined rank, entries may be complete.
void Coordinator::IssueAllComplete(Answers* answers) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    // Issuing removes the operation, and the name with its last operation.
    const auto next_name = std::next(at);
    for (auto operation = at->second.begin(); operation != at->second.end();) {
      const auto next_entry = std::next(operation);
      const bool last = next_entry == at->second.end();
      IssueIfComplete(at, operation, answers);
      if (last) break;
      operation = next_entry;
    }
    at = next_name;
  }
}

void Coordinator::OnLeave(uint32_t from, uint32_t rank, Answers* answers) {
  // Its reports came before this message.
  if (early_ && early_->to == rank && from == rank) GiveBackEarly(answers);
  if (from == rank) answers->push_back({from, AbortNotice{}});
  if (rank >= map_.host_of.size() || !left_.insert(rank).second) return;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Rounds& rounds = at->second;
    rounds.remove_if([&](const PendingOperation& operation) {
      const bool member =
          std::find(operation.ranks.begin(), operation.ranks.end(), rank) != operation.ranks.end();
      if (!member) return false;
      Status why = LeftBefore(rank, std::get<std::string>(at->first));
      if (IsEarly(operation)) {
        Recall(std::move(why), answers);
        return false;
      }
      Fail(operation, why, answers);
      return true;
    });
    at = rounds.empty() ? waiting_.erase(at) : std::next(at);
  }
  // No host may begin an operation whose leader has gone. Leaders that were already told to run it
  // still do.
  for (const PendingOperation& held : order_.RemoveHeld(rank))
    Fail(held, LeftBefore(rank, held.first().name), answers);
  for (auto [joined, ticket] : joined_) {
    if (!left_.contains(joined)) {
      answers->push_back({joined, EndMessage{ticket, LeftBefore(rank, "join"), 0}});
    }
    failed_joins_.insert(joined);
  }
  joined_.clear();
}

void Coordinator::Close(const std::string& why, Answers* answers) {
  for (const PendingOperation& held : order_.RemoveHeld(std::nullopt))
    Fail(held, Aborted(why), answers);
  // Rank 0 may be a member, too, and no longer takes part.
  for (const auto& [key, rounds] : waiting_) {
    for (const PendingOperation& operation : rounds) {
      const bool member = operation.ranks[0] == map_.rank;
      const std::vector<uint32_t> missing = MissingRanks(operation);
      const bool awaited = member && !missing.empty() && missing[0] == map_.rank;
      const std::string& name = std::get<std::string>(key);
      Fail(operation, awaited ? LeftBefore(map_.rank, name) : Aborted(why), answers);
    }
  }
  for (auto [rank, ticket] : joined_) {
    answers->push_back({rank, EndMessage{ticket, Aborted(why), 0}});
  }
  early_.reset();
  waiting_.clear();
  joined_.clear();
  for (uint32_t rank : heard_of_) {
    if (!left_.contains(rank)) answers->push_back({rank, AbortNotice{why}});
  }
}

std::vector<std::string> Coordinator::Stalls(TimePoint now, Answers* answers) {
  std::vector<std::string> sentences;
  for (auto& [key, rounds] : waiting_) {
    for (PendingOperation& operation : rounds) {
      if (!operation.failed.ok()) continue;
      ReportAwaited(operation, now, answers);
      const bool warn =
          options_.stall_warning.count() > 0 && now - operation.warned_at >= options_.stall_warning;
      if (!warn) continue;
      operation.warned_at = now;
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(now - operation.since).count();
      std::vector<uint32_t> ready;
      for (const LeaderReport& report : operation.reports) ready.push_back(report.leader);
      sentences.push_back(Format(
          "'{}' has waited {} s for the host of {}; the hosts of {} are ready",
          std::get<std::string>(key), seconds, RankList(MissingRanks(operation)), RankList(ready)));
    }
  }
  return sentences;
}

void Coordinator::ReportAwaited(PendingOperation& operation, TimePoint now, Answers* answers) {
  if (options_.report_awaited_after.count() <= 0 ||
      now - operation.since < options_.report_awaited_after)
    return;
  std::vector<uint32_t> missing = MissingRanks(operation);
  if (missing == operation.last_reported) return;
  for (const LeaderReport& report : operation.reports) {
    answers->push_back({report.leader, WaitMessage{report.msg.ticket, missing}});
  }
  operation.last_reported = std::move(missing);
}

}  // namespace hvd
