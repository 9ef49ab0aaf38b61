#include "runtime/backends/hosts/coordination/coordinator.h"

#include <algorithm>
#include <utility>

#include "runtime/backends/rank_list.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// How many batches are given out at once: enough that leaders are never idle, and few enough that
// operations which become ready meanwhile are fused.
constexpr uint32_t kMostInFlight = 2;

Status LeftBefore(uint32_t rank, const std::string& name) {
  return Aborted(Format(
      "rank {} left the world before it took part in '{}': it called shutdown or came to its end",
      rank, name));
}

bool MembersMayHaveJoined(Collective collective) {
  return collective == Collective::kAllreduce || collective == Collective::kBarrier;
}

// The leaders learn it with the operation, so that all of them cut alike while it changes.
SumCut CutNow(const CoordinatorOptions& options) {
  SumCut cut = options.cut;
  if (options.tuned != nullptr) cut.stripes = ChosenOr(options.tuned->stripes, cut.stripes);
  return cut;
}

// What each host gives to a sum is here, of one length, as hosts that agree have it.
bool AllOffered(std::span<const std::string> sums) {
  return !sums.empty() && std::ranges::all_of(sums, [&](const std::string& sum) {
    return !sum.empty() && sum.size() == sums[0].size();
  });
}

}  // namespace

Coordinator::Coordinator(const HostMap& map, CompareDetailsOf compare, CoordinatorOptions options)
    : map_(map), compare_(std::move(compare)), options_(options) {}

Status Coordinator::Receive(uint32_t from, Coordination msg, TimePoint now, Answers* answers) {
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
    OnDone(done->number, answers);
  } else {
    return InvalidArgument(
        Format("rank {} sent a message that only the coordinator, rank 0, may send", from));
  }
  return Status::Ok();
}

std::vector<uint32_t> Coordinator::RanksOf(const ReadyMessage& msg) const {
  if (!msg.ranks.empty()) return msg.ranks;
  std::vector<uint32_t> world(map_.host_of.size());
  for (uint32_t r = 0; r < world.size(); ++r) world[r] = r;
  return world;
}

void Coordinator::OnReady(uint32_t from, ReadyMessage msg, TimePoint now, Answers* answers) {
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
  // The first round in which this host is still missing.
  auto entry = std::find_if(at->second.begin(), at->second.end(), [&](const Entry& round) {
    return std::none_of(round.reports.begin(), round.reports.end(),
                        [&](const Report& report) { return report.host == host; });
  });
  if (entry == at->second.end()) {
    entry = at->second.insert(entry, Entry{RanksOf(msg), {}, now, now, {}, {}});
  }
  auto place = std::find_if(entry->reports.begin(), entry->reports.end(),
                            [&](const Report& report) { return report.host > host; });
  if (!entry->failed.ok()) answers->push_back({from, EndMessage{msg.ticket, entry->failed, 0}});
  entry->reports.insert(place, Report{host, from, std::move(msg)});
  SettleIfComplete(at, entry, answers);
}

// Members on hosts that have not reported, other than those that have joined.
std::vector<uint32_t> Coordinator::MissingRanks(const Entry& entry) const {
  std::set<uint32_t> hosts;
  for (const Report& report : entry.reports) hosts.insert(report.host);
  std::vector<uint32_t> missing;
  for (uint32_t rank : entry.ranks) {
    if (!hosts.contains(map_.host_of[rank]) && !HasJoined(rank)) missing.push_back(rank);
  }
  return missing;
}

void Coordinator::SettleIfComplete(std::map<Key, std::list<Entry>>::iterator at,
                                   std::list<Entry>::iterator entry, Answers* answers) {
  if (!MissingRanks(*entry).empty()) return;
  // A rank that has joined since they were counted has announced it before, or is about to.
  if (ParticipantsIn(*entry) < entry->reports[0].msg.participants) return;
  Entry complete = std::move(*entry);
  const std::string name = std::get<std::string>(at->first);
  at->second.erase(entry);
  if (at->second.empty()) waiting_.erase(at);
  if (!complete.failed.ok()) return;
  Status verdict = VerdictOf(complete, name);
  if (!verdict.ok() || complete.reports[0].msg.collective == Collective::kBarrier) {
    return Fail(complete, verdict, answers);
  }
  std::vector<uint32_t> leaders;
  for (const Report& report : complete.reports) leaders.push_back(report.leader);
  Lane& lane = lanes_[leaders];
  lane.held.push_back(MakeReady(std::move(complete)));
  IssueHeld(lane, answers);
}

// The first host's failure, or how the hosts disagree, or the ranks that have joined although the
// operation cannot be done without them.
Status Coordinator::VerdictOf(const Entry& entry, const std::string& name) const {
  std::vector<HostDetail> details;
  for (const Report& report : entry.reports) {
    if (!report.msg.failure.ok()) return report.msg.failure;
    details.push_back({report.leader, report.msg.detail});
  }
  const auto differs = [&](const HostDetail& d) { return d.detail != details[0].detail; };
  if (std::any_of(details.begin(), details.end(), differs)) {
    if (Status same = compare_(name, details); !same.ok()) return same;
  }
  const size_t parts = entry.reports[0].msg.parts.size();
  for (const Report& report : entry.reports) {
    if (report.msg.parts.size() == parts) continue;
    return Internal("hosts disagree about the number of tensors in '" + name + "'");
  }
  return JoinedVerdict(entry, name);
}

Status Coordinator::JoinedVerdict(const Entry& entry, const std::string& name) const {
  const Collective collective = entry.reports[0].msg.collective;
  if (MembersMayHaveJoined(collective)) return Status::Ok();
  // The report of a host names the ranks that take part there; ranks of it that have joined since
  // did so later.
  std::set<uint32_t> reported;
  std::vector<uint32_t> gone;
  for (const Report& report : entry.reports) reported.insert(report.host);
  for (uint32_t rank : entry.ranks) {
    if (HasJoined(rank) && !reported.contains(map_.host_of[rank])) gone.push_back(rank);
  }
  for (const Report& report : entry.reports) {
    gone.insert(gone.end(), report.msg.joined.begin(), report.msg.joined.end());
  }
  if (gone.empty()) return Status::Ok();
  std::sort(gone.begin(), gone.end());
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  return Mismatch("'" + name + "' needs " + RankList(gone) + ", which " +
                  (gone.size() == 1 ? "has" : "have") +
                  " joined; only allreduce and barrier go on without ranks that called hvd.join()");
}

void Coordinator::Fail(const Entry& entry, const Status& status, Answers* answers) {
  if (!entry.failed.ok()) return;
  for (const Report& report : entry.reports) {
    if (left_.contains(report.leader)) continue;  // it may be gone already
    answers->push_back({report.leader, EndMessage{report.msg.ticket, status, 0}});
  }
}

// Members that take part on the hosts that have reported.
uint32_t Coordinator::ParticipantsIn(const Entry& entry) const {
  uint32_t participants = 0;
  const HostParts hosts(map_, entry.ranks);
  for (const Report& report : entry.reports) {
    for (const HostParts::Part& part : hosts.parts) {
      if (part.host != report.host) continue;
      participants += static_cast<uint32_t>(part.members.size() - report.msg.joined.size());
    }
  }
  return participants;
}

Coordinator::Ready Coordinator::MakeReady(Entry entry) const {
  Ready ready;
  ready.run.participants = ParticipantsIn(entry);
  const ReadyMessage& first = entry.reports[0].msg;
  for (const PartInfo& part : first.parts) ready.bytes += part.bytes;
  const auto same_key = [&](const Report& r) { return r.msg.fusion_key == first.fusion_key; };
  const bool alike = std::all_of(entry.reports.begin(), entry.reports.end(), same_key);
  ready.fusion_key = alike ? first.fusion_key : 0;
  ready.entry = std::move(entry);
  return ready;
}

// Adasum: how many ranks take part on each host, where the hosts reported it.
std::vector<std::vector<int64_t>> Coordinator::ParticipantsOf(const Ready& ready) const {
  std::vector<std::vector<int64_t>> numbers;
  for (size_t p = 0; p < ready.entry.reports[0].msg.parts.size(); ++p) {
    numbers.emplace_back();
    for (const Report& report : ready.entry.reports) {
      const std::vector<int64_t>& told = report.msg.parts[p].extents;
      numbers.back().insert(numbers.back().end(), told.begin(), told.end());
    }
  }
  return numbers;
}

// What the leader on `host` needs to know about the extents of the others.
std::vector<std::vector<int64_t>> Coordinator::ExtentsFor(const Ready& ready, uint32_t host) const {
  const Collective collective = ready.entry.reports[0].msg.collective;
  std::vector<std::vector<int64_t>> extents;
  if (collective == Collective::kAllreduce) return ParticipantsOf(ready);
  if (collective != Collective::kAllgather && collective != Collective::kAlltoall) return extents;
  const HostParts hosts(map_, ready.entry.ranks);
  const size_t size = ready.entry.ranks.size();
  const size_t own = static_cast<size_t>(
      std::find_if(hosts.parts.begin(), hosts.parts.end(),
                   [&](const HostParts::Part& part) { return part.host == host; }) -
      hosts.parts.begin());
  const std::vector<uint32_t>& here = hosts.parts[own].members;
  for (size_t p = 0; p < ready.entry.reports[0].msg.parts.size(); ++p) {
    const bool gather = collective == Collective::kAllgather;
    std::vector<int64_t> list(gather ? size : here.size() * size, 0);
    for (size_t h = 0; h < ready.entry.reports.size(); ++h) {
      const std::vector<int64_t>& told = ready.entry.reports[h].msg.parts[p].extents;
      const std::vector<uint32_t>& there = hosts.parts[h].members;
      for (size_t m = 0; m < there.size(); ++m) {
        if (gather) {
          if (m < told.size()) list[there[m]] = told[m];
          continue;
        }
        for (size_t i = 0; i < here.size(); ++i) {
          const size_t word = m * size + here[i];
          if (word < told.size()) list[i * size + there[m]] = told[word];
        }
      }
    }
    extents.push_back(std::move(list));
  }
  return extents;
}

uint64_t Coordinator::FusionBytes() const {
  if (options_.tuned == nullptr) return options_.fusion_bytes;
  return ChosenOr(options_.tuned->fusion, options_.fusion_bytes);
}

void Coordinator::IssueHeld(Lane& lane, Answers* answers) {
  const uint64_t fusion_bytes = FusionBytes();
  std::deque<Ready>& held = lane.held;
  while (!held.empty() && (lane.under_way < kMostInFlight || fusion_bytes == 0)) {
    std::vector<Ready> batch;
    batch.push_back(std::move(held.front()));
    held.pop_front();
    uint64_t bytes = batch[0].bytes;
    while (!held.empty() && batch[0].fusion_key != 0 &&
           held.front().fusion_key == batch[0].fusion_key &&
           held.front().run.participants == batch[0].run.participants &&
           AgreeAlike(held.front().entry, batch[0].entry) &&
           bytes + held.front().bytes <= fusion_bytes) {
      bytes += held.front().bytes;
      batch.push_back(std::move(held.front()));
      held.pop_front();
    }
    Issue(lane, batch, answers);
  }
}

void Coordinator::Issue(Lane& lane, std::span<const Ready> batch, Answers* answers) {
  RunMessage msg;
  msg.number = next_number_++;
  msg.cut = CutNow(options_);
  ++lane.under_way;
  running_[msg.number] = &lane;
  const std::vector<Report>& reports = batch[0].entry.reports;
  for (const Report& report : reports) msg.leaders.push_back(report.leader);
  if (msg.leaders == FirstMembers(map_, batch[0].entry.ranks)) msg.leaders.clear();
  const bool agrees = !reports[0].msg.note.empty();
  if (agrees) AddNotes(batch[0].entry, &msg);
  std::vector<std::string> offers;
  for (const Report& report : reports) offers.push_back(report.msg.sum);
  const bool offered = batch.size() == 1 && AllOffered(offers);
  for (size_t h = 0; h < reports.size(); ++h) {
    msg.entries.clear();
    for (const Ready& ready : batch) {
      RunEntry entry = ready.run;
      entry.ticket = ready.entry.reports[h].msg.ticket;
      entry.extents = ExtentsFor(ready, reports[h].host);
      msg.entries.push_back(std::move(entry));
    }
    if (agrees) {
      msg.turns = TakeTurns(batch[0].entry, reports[h]);
      answers->push_back({reports[h].leader, TurnMessage{msg}});
    } else if (offered) {
      msg.sums = offers;
      msg.sums[h].clear();
      answers->push_back({reports[h].leader, SumsMessage{msg}});
    } else {
      answers->push_back({reports[h].leader, msg});
    }
  }
}

// May be in one batch, as far as that depends on what the hosts agree about.
bool Coordinator::AgreeAlike(const Entry& a, const Entry& b) {
  const bool moves = a.reports[0].msg.note.empty();
  return NotesIn(a) == NotesIn(b) && (moves || a.ranks == b.ranks);
}

std::vector<std::string> Coordinator::NotesIn(const Entry& entry) {
  std::vector<std::string> notes;
  for (const Report& report : entry.reports) notes.push_back(report.msg.note);
  return notes;
}

// Those that all members have are not told again. A rank that has joined misses some.
void Coordinator::AddNotes(const Entry& entry, RunMessage* msg) {
  std::vector<std::string> notes = NotesIn(entry);
  std::vector<std::string>& last = notes_[entry.ranks];
  if (last != notes) msg->notes = notes;
  const bool all = ParticipantsIn(entry) == entry.ranks.size();
  last = all ? std::move(notes) : std::vector<std::string>{};
}

// Of the members on the host of the report.
std::vector<uint64_t> Coordinator::TakeTurns(const Entry& entry, const Report& report) {
  std::vector<uint64_t> turns;
  for (uint32_t rank : entry.ranks) {
    if (map_.host_of[rank] != report.host) continue;
    const bool joined = std::ranges::find(report.msg.joined, rank) != report.msg.joined.end();
    turns.push_back(joined ? 0 : ++turns_[rank]);
  }
  return turns;
}

void Coordinator::OnDone(uint64_t number, Answers* answers) {
  auto running = running_.find(number);
  if (running == running_.end()) return;
  Lane& lane = *running->second;
  running_.erase(running);
  --lane.under_way;
  IssueHeld(lane, answers);
}

// A ticket that is running already has to run: the others count on it. An operation that was
// withdrawn has also failed for hosts that report it later: a leader that has joined by then is not
// neutral in it.
void Coordinator::OnWithdraw(uint32_t from, const WithdrawMessage& msg, Answers* answers) {
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    for (auto entry = at->second.begin(); entry != at->second.end(); ++entry) {
      const bool ours =
          std::any_of(entry->reports.begin(), entry->reports.end(), [&](const Report& report) {
            return report.leader == from && report.msg.ticket == msg.ticket;
          });
      if (!ours) continue;
      Fail(*entry, Aborted(msg.why), answers);
      if (entry->failed.ok()) entry->failed = Aborted(msg.why);
      return;
    }
  }
}

bool Coordinator::HasJoined(uint32_t rank) const {
  return joined_.contains(rank) || joined_in_vain_.contains(rank);
}

// Where a rank has left, a join fails; but ranks that have joined submit nothing more, so the
// others go on without them.
void Coordinator::OnJoin(uint32_t from, const JoinMessage& msg, Answers* answers) {
  if (!left_.empty()) {
    answers->push_back({from, EndMessage{msg.ticket, LeftBefore(*left_.begin(), "join"), 0}});
    joined_in_vain_.insert(from);
    return SettleAll(answers);
  }
  joined_[from] = msg.ticket;
  SettleAll(answers);
  if (joined_.size() < map_.host_of.size()) return;
  for (auto [rank, ticket] : joined_) {
    answers->push_back({rank, EndMessage{ticket, Status::Ok(), msg.last_here}});
  }
  joined_.clear();
}

// With one more rank that has joined, entries may be complete.
void Coordinator::SettleAll(Answers* answers) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    // Settling takes away the entry, and the name with its last entry.
    const auto next_name = std::next(at);
    for (auto entry = at->second.begin(); entry != at->second.end();) {
      const auto next_entry = std::next(entry);
      const bool last = next_entry == at->second.end();
      SettleIfComplete(at, entry, answers);
      if (last) break;
      entry = next_entry;
    }
    at = next_name;
  }
}

void Coordinator::OnLeave(uint32_t from, uint32_t rank, Answers* answers) {
  if (from == rank) answers->push_back({from, AbortNotice{}});
  if (rank >= map_.host_of.size() || !left_.insert(rank).second) return;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    std::list<Entry>& rounds = at->second;
    rounds.remove_if([&](const Entry& entry) {
      const bool member =
          std::find(entry.ranks.begin(), entry.ranks.end(), rank) != entry.ranks.end();
      if (member) Fail(entry, LeftBefore(rank, std::get<std::string>(at->first)), answers);
      return member;
    });
    at = rounds.empty() ? waiting_.erase(at) : std::next(at);
  }
  FailHeld(rank, answers);
  for (auto [joined, ticket] : joined_) {
    if (!left_.contains(joined)) {
      answers->push_back({joined, EndMessage{ticket, LeftBefore(rank, "join"), 0}});
    }
    joined_in_vain_.insert(joined);
  }
  joined_.clear();
}

// What a rank leads that has gone nobody may begin. What was given out it still does.
void Coordinator::FailHeld(uint32_t leader, Answers* answers) {
  for (auto& [leaders, lane] : lanes_) {
    if (std::ranges::find(leaders, leader) == leaders.end()) continue;
    for (const Ready& ready : lane.held) {
      const std::string& name = ready.entry.reports[0].msg.name;
      Fail(ready.entry, LeftBefore(leader, name), answers);
    }
    lane.held.clear();
  }
}

void Coordinator::Close(const std::string& why, Answers* answers) {
  for (auto& [leaders, lane] : lanes_) {
    for (const Ready& ready : lane.held) Fail(ready.entry, Aborted(why), answers);
    lane.held.clear();
  }
  // Rank 0 may be a member, too, and does not take part any more.
  for (const auto& [key, rounds] : waiting_) {
    for (const Entry& entry : rounds) {
      const bool member = entry.ranks[0] == map_.rank;
      const std::vector<uint32_t> missing = MissingRanks(entry);
      const bool awaited = member && !missing.empty() && missing[0] == map_.rank;
      const std::string& name = std::get<std::string>(key);
      Fail(entry, awaited ? LeftBefore(map_.rank, name) : Aborted(why), answers);
    }
  }
  for (auto [rank, ticket] : joined_) {
    answers->push_back({rank, EndMessage{ticket, Aborted(why), 0}});
  }
  waiting_.clear();
  joined_.clear();
  for (uint32_t rank : heard_of_) {
    if (!left_.contains(rank)) answers->push_back({rank, AbortNotice{why}});
  }
}

std::vector<std::string> Coordinator::Stalls(TimePoint now, Answers* answers) {
  std::vector<std::string> sentences;
  for (auto& [key, rounds] : waiting_) {
    for (Entry& entry : rounds) {
      if (!entry.failed.ok()) continue;
      ReportAwaited(entry, now, answers);
      const bool warn =
          options_.stall_warning.count() > 0 && now - entry.warned_at >= options_.stall_warning;
      if (!warn) continue;
      entry.warned_at = now;
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(now - entry.since).count();
      std::vector<uint32_t> ready;
      for (const Report& report : entry.reports) ready.push_back(report.leader);
      sentences.push_back(Format(
          "'{}' has waited {} s for the host of {}; the hosts of {} are ready",
          std::get<std::string>(key), seconds, RankList(MissingRanks(entry)), RankList(ready)));
    }
  }
  return sentences;
}

void Coordinator::ReportAwaited(Entry& entry, TimePoint now, Answers* answers) {
  if (options_.tell_awaited.count() <= 0 || now - entry.since < options_.tell_awaited) return;
  std::vector<uint32_t> missing = MissingRanks(entry);
  if (missing == entry.told) return;
  for (const Report& report : entry.reports) {
    answers->push_back({report.leader, WaitMessage{report.msg.ticket, missing}});
  }
  entry.told = std::move(missing);
}

}  // namespace hvd
