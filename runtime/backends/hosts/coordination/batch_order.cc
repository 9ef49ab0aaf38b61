#include "runtime/backends/hosts/coordination/batch_order.h"

#include <algorithm>
#include <utility>

#include "runtime/base/travels_alone.h"

namespace hvd {
namespace {

// How many batches are in flight at once: enough that leaders are never idle, and few enough that
// operations which become ready meanwhile are fused.
constexpr uint32_t kMostInFlight = 2;

// Only with two hosts: nothing of a third one waits behind a sum whose receiver is late. Larger
// sums gain nothing.
constexpr uint32_t kEagerKib = 256;

// What each host contributes to a sum is here, all of one length, as hosts that agree have it.
bool AllOffered(std::span<const LeaderReport> reports) {
  return std::ranges::all_of(reports, [&](const LeaderReport& report) {
    return !report.msg.sum.empty() && report.msg.sum.size() == reports[0].msg.sum.size();
  });
}

// For the leader of the report `own`: the parts of the others.
std::vector<MessageBytes> SumsFor(size_t own, std::span<const LeaderReport> reports) {
  std::vector<MessageBytes> sums(reports.size());
  for (size_t h = 0; h < reports.size(); ++h) {
    if (h != own) sums[h] = reports[h].msg.sum;
  }
  return sums;
}

// Adasum: how many ranks take part on each host, where the hosts reported it.
std::vector<std::vector<int64_t>> ParticipantsOf(const PendingOperation& operation) {
  std::vector<std::vector<int64_t>> numbers;
  for (size_t p = 0; p < operation.first().parts.size(); ++p) {
    numbers.emplace_back();
    for (const LeaderReport& report : operation.reports) {
      const std::vector<int64_t>& extents_there = report.msg.parts[p].extents;
      numbers.back().insert(numbers.back().end(), extents_there.begin(), extents_there.end());
    }
  }
  return numbers;
}

std::vector<std::string> NotesIn(const PendingOperation& operation) {
  std::vector<std::string> notes;
  for (const LeaderReport& report : operation.reports) notes.push_back(report.msg.note);
  return notes;
}

// Whether they may be in one batch, as far as that depends on what the hosts agree about.
bool AgreeAlike(const PendingOperation& a, const PendingOperation& b) {
  const bool moves = a.first().note.empty();
  return NotesIn(a) == NotesIn(b) && (moves || a.ranks == b.ranks);
}

}  // namespace

void BatchOrder::Add(PendingOperation operation, CoordinationAnswers* answers) {
  Lane& lane = lanes_[operation.Leaders()];
  lane.held.push_back(MakeReady(std::move(operation)));
  IssueHeld(lane, answers);
}

std::vector<PendingOperation> BatchOrder::RemoveHeld(std::optional<uint32_t> leader) {
  std::vector<PendingOperation> taken;
  for (auto& [leaders, lane] : lanes_) {
    if (leader && std::ranges::find(leaders, *leader) == leaders.end()) continue;
    for (Ready& ready : lane.held) taken.push_back(std::move(ready.operation));
    lane.held.clear();
  }
  return taken;
}

BatchOrder::Ready BatchOrder::MakeReady(PendingOperation operation) const {
  Ready ready;
  ready.run.participants = operation.Participants(map_);
  const ReadyMessage& first = operation.first();
  for (const PartInfo& part : first.parts) ready.bytes += part.bytes;
  const auto same_key = [&](const LeaderReport& r) { return r.msg.fusion_key == first.fusion_key; };
  const bool alike = std::ranges::all_of(operation.reports, same_key);
  ready.fusion_key = alike && ready.bytes < kTravelsAloneBytes ? first.fusion_key : 0;
  ready.operation = std::move(operation);
  return ready;
}

// What the leader on `host` needs to know about the extents of the others.
std::vector<std::vector<int64_t>> BatchOrder::ExtentsFor(const PendingOperation& operation,
                                                         uint32_t host) const {
  const Collective collective = operation.first().collective;
  std::vector<std::vector<int64_t>> extents;
  if (collective == Collective::kAllreduce) return ParticipantsOf(operation);
  if (collective != Collective::kAllgather && collective != Collective::kAlltoall) return extents;
  const HostParts hosts(map_, operation.ranks);
  const size_t size = operation.ranks.size();
  const size_t own = static_cast<size_t>(
      std::find_if(hosts.parts.begin(), hosts.parts.end(),
                   [&](const HostParts::Part& part) { return part.host == host; }) -
      hosts.parts.begin());
  const std::vector<uint32_t>& here = hosts.parts[own].members;
  for (size_t p = 0; p < operation.first().parts.size(); ++p) {
    const bool gather = collective == Collective::kAllgather;
    std::vector<int64_t> list(gather ? size : here.size() * size, 0);
    for (size_t h = 0; h < operation.reports.size(); ++h) {
      const std::vector<int64_t>& extents_there = operation.reports[h].msg.parts[p].extents;
      const std::vector<uint32_t>& there = hosts.parts[h].members;
      for (size_t m = 0; m < there.size(); ++m) {
        if (gather) {
          if (m < extents_there.size()) list[there[m]] = extents_there[m];
          continue;
        }
        for (size_t i = 0; i < here.size(); ++i) {
          const size_t word = m * size + here[i];
          if (word < extents_there.size()) list[i * size + there[m]] = extents_there[word];
        }
      }
    }
    extents.push_back(std::move(list));
  }
  return extents;
}

// The leaders receive it with the operation, so that all of them cut alike even while it changes.
SumCut BatchOrder::CutNow() const {
  SumCut cut = options_.cut;
  cut.eager_kib = two_hosts_ ? kEagerKib : 0;
  if (options_.tuned != nullptr) cut.stripes = ChosenOr(options_.tuned->stripes, cut.stripes);
  return cut;
}

uint64_t BatchOrder::FusionBytes() const {
  if (options_.tuned == nullptr) return options_.fusion_bytes;
  return ChosenOr(options_.tuned->fusion, options_.fusion_bytes);
}

void BatchOrder::IssueHeld(Lane& lane, CoordinationAnswers* answers) {
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
           AgreeAlike(held.front().operation, batch[0].operation) &&
           bytes + held.front().bytes <= fusion_bytes) {
      bytes += held.front().bytes;
      batch.push_back(std::move(held.front()));
      held.pop_front();
    }
    Issue(lane, batch, answers);
  }
}

void BatchOrder::Issue(Lane& lane, std::span<const Ready> batch, CoordinationAnswers* answers) {
  RunMessage msg;
  msg.number = next_number_++;
  msg.cut = CutNow();
  ++lane.under_way;
  running_[msg.number] = &lane;
  const std::vector<LeaderReport>& reports = batch[0].operation.reports;
  msg.leaders = batch[0].operation.Leaders();
  if (msg.leaders == FirstMembers(map_, batch[0].operation.ranks)) msg.leaders.clear();
  const bool agrees = !batch[0].operation.first().note.empty();
  if (agrees) AddNotes(batch[0].operation, &msg);
  const bool offered = batch.size() == 1 && AllOffered(reports);
  for (size_t h = 0; h < reports.size(); ++h) {
    msg.entries.clear();
    for (const Ready& ready : batch) {
      RunEntry entry = ready.run;
      entry.ticket = ready.operation.reports[h].msg.ticket;
      entry.extents = ExtentsFor(ready.operation, reports[h].host);
      msg.entries.push_back(std::move(entry));
    }
    if (agrees) {
      msg.turns = AssignTurns(batch[0].operation, reports[h]);
      answers->push_back({reports[h].leader, TurnMessage{msg}});
    } else if (offered) {
      SumsMessage sums{msg};
      sums.run.sums = SumsFor(h, reports);
      answers->push_back({reports[h].leader, std::move(sums)});
    } else {
      answers->push_back({reports[h].leader, msg});
    }
  }
}

// Those that all members have are not sent again. A rank that has joined misses some.
void BatchOrder::AddNotes(const PendingOperation& operation, RunMessage* msg) {
  std::vector<std::string> notes = NotesIn(operation);
  std::vector<std::string>& last = notes_[operation.ranks];
  if (last != notes) msg->notes = notes;
  const bool all = operation.Participants(map_) == operation.ranks.size();
  last = all ? std::move(notes) : std::vector<std::string>{};
}

// Of the members on the host of the report.
std::vector<uint64_t> BatchOrder::AssignTurns(const PendingOperation& operation,
                                              const LeaderReport& report) {
  std::vector<uint64_t> turns;
  for (uint32_t rank : operation.ranks) {
    if (map_.host_of[rank] != report.host) continue;
    const bool joined = std::ranges::find(report.msg.joined, rank) != report.msg.joined.end();
    turns.push_back(joined ? 0 : ++turns_[rank]);
  }
  return turns;
}

void BatchOrder::OnDone(uint64_t number, CoordinationAnswers* answers) {
  auto running = running_.find(number);
  if (running == running_.end()) return;
  Lane& lane = *running->second;
  running_.erase(running);
  --lane.under_way;
  IssueHeld(lane, answers);
}

}  // namespace hvd
