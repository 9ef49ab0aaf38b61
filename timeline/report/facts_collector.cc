#include "timeline/report/facts_collector.h"

#include <algorithm>
#include <utility>

#include "timeline/read/json_walk.h"

namespace hvd {
namespace {

constexpr std::string_view kNegotiate = "\"NEGOTIATE_";
constexpr std::string_view kOperations[] = {"\"ALLREDUCE\"", "\"ALLGATHER\"", "\"BROADCAST\"",
                                            "\"ALLTOALL\"", "\"REDUCESCATTER\""};

// Other traces may contain any names.
constexpr size_t kMostActivities = 100;

bool IsOperation(std::string_view name) {
  return std::find(std::begin(kOperations), std::end(kOperations), name) != std::end(kOperations);
}

// "NEGOTIATE_ALLREDUCE": a collective that moves data.
bool NegotiatesData(std::string_view name) {
  return IsOperation('"' + std::string(name.substr(kNegotiate.size())));
}

std::string_view Member(std::string_view args, std::string_view wanted) {
  std::string_view found;
  ForEachMember(args, [&](std::string_view key, std::string_view value) {
    if (key == wanted) found = value;
  });
  return found;
}

uint64_t Count(std::string_view args, std::string_view wanted) {
  return static_cast<uint64_t>(std::max<int64_t>(0, IntegerOf(Member(args, wanted))));
}

// Sums of many of these do not overflow.
int64_t Time(std::string_view args, std::string_view wanted) {
  constexpr int64_t kMost = int64_t{1} << 50;
  return std::clamp<int64_t>(IntegerOf(Member(args, wanted)), 0, kMost);
}

}  // namespace

FactsCollector::Rank* FactsCollector::Find(std::string_view pid) {
  if (last_rank_ != nullptr && last_pid_ == pid) return last_rank_;
  last_pid_ = pid;
  const auto found = ranks_.find(last_pid_);
  return last_rank_ = found == ranks_.end() ? nullptr : &found->second;
}

uint32_t FactsCollector::TensorNamed(const std::string& name) {
  const auto [entry, is_new] =
      tensors_.try_emplace(name, static_cast<uint32_t>(facts_.tensors.size()));
  if (is_new) facts_.tensors.push_back(name);
  return entry->second;
}

// "rank 2 on node1"; other processes are not part of a job.
void FactsCollector::NameRank(const TraceEvent& event) {
  const std::string label = StringOf(Member(event.args, "name"));
  constexpr std::string_view kRank = "rank ";
  const size_t digits = label.find_first_not_of("0123456789", kRank.size());
  const std::string number =
      label.size() <= kRank.size()
          ? ""
          : label.substr(kRank.size(), std::min(digits, label.size()) - kRank.size());
  if (!label.starts_with(kRank) || number.empty()) return;
  Rank* rank = Find(event.pid);
  if (rank == nullptr) {
    rank = &ranks_[std::string(event.pid)];
    rank->place = facts_.ranks.size();
    rank->own_mark = '"' + number + '"';
    facts_.ranks.emplace_back();
    last_rank_ = nullptr;
  }
  FactsOf(*rank).number = IntegerOf(number);
  FactsOf(*rank).label = label;
}

void FactsCollector::Metadata(const TraceEvent& event) {
  if (event.name == "\"process_name\"") return NameRank(event);
  if (event.name == "\"events_lost\"") {
    facts_.not_written += Count(event.args, "not_written");
    return;
  }
  Rank* rank = Find(event.pid);
  if (rank == nullptr) return;
  if (event.name == "\"thread_name\"") {
    rank->rows[IntegerOf(event.tid, -1)].tensor = TensorNamed(StringOf(Member(event.args, "name")));
  } else if (event.name == "\"clock\"") {
    int64_t& uncertainty = FactsOf(*rank).clock_uncertainty_ns;
    uncertainty = std::max(uncertainty, Time(event.args, "uncertainty_ns"));
  }
}

FactsCollector::Row& FactsCollector::RowOf(Rank& rank, const TraceEvent& event) {
  const int64_t tid = IntegerOf(event.tid, -1);
  const auto [entry, is_new] = rank.rows.try_emplace(tid);
  if (is_new) entry->second.tensor = TensorNamed("row " + std::string(event.tid));
  return entry->second;
}

// Time has passed for a rank.
void FactsCollector::Advance(Rank& rank, int64_t ns) {
  RankHistory& facts = FactsOf(rank);
  if (!std::exchange(rank.begun, true)) facts.first_ns = rank.now_ns = ns;
  if (ns <= rank.now_ns) return;
  const int64_t passed = ns - rank.now_ns;
  rank.now_ns = facts.last_ns = ns;
  TimeSpent& spent = facts.spent;
  if (rank.waits > 0) spent.waited += passed;
  if (rank.flying == 0) return;
  spent.communicated += passed;
  if (rank.waits > 0) spent.exposed += passed;
  if (rank.negotiating == rank.flying) spent.negotiated += passed;
}

void FactsCollector::Add(const TraceEvent& event) {
  ++facts_.events;
  if (event.phase == 'M') return Metadata(event);
  Rank* rank = Find(event.pid);
  const auto ns = NanosecondsOf(event.ts);
  constexpr int64_t kMost = int64_t{1} << 60;
  if (rank == nullptr || !ns || *ns > kMost || *ns < -kMost) return;
  if (event.name == "\"LAST_TO_ARRIVE\"") return Late(*rank, RowOf(*rank, event), event);
  Advance(*rank, *ns);
  if (event.tid == "0") {
    OwnRow(*rank, event);
  } else {
    TensorRow(*rank, event, *ns);
  }
}

// Marks and waits of the rank itself.
void FactsCollector::OwnRow(Rank& rank, const TraceEvent& event) {
  RankHistory& facts = FactsOf(rank);
  if (event.phase == 'B') {
    if (rank.waits++ == 0) rank.wait_begin_ns = rank.now_ns;
  } else if (event.phase == 'E') {
    if (rank.waits == 0 || --rank.waits > 0) return;
    facts.waits.push_back({rank.wait_begin_ns, rank.now_ns});
  } else if (event.name == "\"GENERATION\"") {
    facts.host = StringOf(Member(event.args, "host"));
  } else if (event.name == "\"EVENTS_LOST\"") {
    facts.lost += Count(event.args, "count");
  } else if (event.name == "\"LINK\"") {
    AddLink(facts, event);
  }
}

void FactsCollector::AddLink(RankHistory& facts, const TraceEvent& event) {
  const int64_t to = Time(event.args, "to");
  auto link = std::find_if(facts.links.begin(), facts.links.end(),
                           [to](const LinkFacts& known) { return known.to == to; });
  if (link == facts.links.end()) link = facts.links.insert(link, LinkFacts{.to = to});
  link->bytes += Count(event.args, "sent");
  link->busy_ns += 1000 * std::min<int64_t>(Time(event.args, "busy_us"), int64_t{1} << 40);
}

void FactsCollector::TensorRow(Rank& rank, const TraceEvent& event, int64_t ns) {
  Row& row = RowOf(rank, event);
  const bool negotiates = event.name.starts_with(kNegotiate);
  if (event.phase == 'B' && !negotiates && !IsOperation(event.name)) {
    BeginActivity(row, event, ns);
  } else if (event.phase == 'B') {
    if (!negotiates) return Start(rank, row);
    row.moves_data = NegotiatesData(event.name);
  } else if (event.phase == 'E' && row.activities > 0) {
    EndActivity(row, ns);
  } else if (event.phase == 'E') {
    End(rank, row, event);
  } else if (event.phase == 'X' && event.name == rank.own_mark) {
    Submit(rank, row);
  } else if (event.phase == 'X' && IsOperation(event.name)) {
    OnlyEnd(rank, row, event);
  }
}

void FactsCollector::BeginActivity(Row& row, const TraceEvent& event, int64_t ns) {
  if (row.activities++ > 0) return;
  const std::string name = StringOf(event.name);
  std::vector<ActivityFacts>& all = facts_.activities;
  auto found = std::find_if(all.begin(), all.end(),
                            [&name](const ActivityFacts& known) { return known.name == name; });
  if (found == all.end() && all.size() < kMostActivities)
    found = all.insert(found, ActivityFacts{.name = name});
  row.activity = static_cast<size_t>(found - all.begin());
  row.activity_ns = ns;
  if (found != all.end()) found->bytes += Count(event.args, "bytes");
}

void FactsCollector::EndActivity(Row& row, int64_t ns) {
  if (--row.activities > 0 || row.activity >= facts_.activities.size()) return;
  ActivityFacts& activity = facts_.activities[row.activity];
  ++activity.times;
  activity.total_ns += std::max<int64_t>(0, ns - row.activity_ns);
}

void FactsCollector::Submit(Rank& rank, Row& row) {
  Close(rank, row);
  RankHistory& facts = FactsOf(rank);
  row.operation = facts.operations.size();
  facts.operations.push_back(
      {.tensor = row.tensor, .submit_ns = rank.now_ns, .before = facts.spent});
  row.negotiating = true;
  ++rank.flying;
  ++rank.negotiating;
}

void FactsCollector::Start(Rank& rank, Row& row) {
  if (row.operation == kNone) Submit(rank, row);
  if (std::exchange(row.negotiating, false)) --rank.negotiating;
  row.running = true;
  FactsOf(rank).operations[row.operation].start_ns = rank.now_ns;
}

void FactsCollector::End(Rank& rank, Row& row, const TraceEvent& event) {
  if (row.operation == kNone) return;
  if (std::exchange(row.negotiating, false)) --rank.negotiating;
  // Only the negotiation has ended: data will be moved.
  if (!row.running && row.moves_data && event.args.empty()) return;
  if (event.args.empty() || Member(event.args, "complete").empty()) {
    OperationTimes& operation = FactsOf(rank).operations[row.operation];
    operation.end_ns = rank.now_ns;
    operation.bytes = Count(event.args, "bytes");
  }
  Close(rank, row);
}

// Nothing in the row is in progress any more.
void FactsCollector::Close(Rank& rank, Row& row) {
  if (std::exchange(row.negotiating, false)) --rank.negotiating;
  row.running = false;
  if (std::exchange(row.operation, kNone) != kNone) --rank.flying;
}

void FactsCollector::OnlyEnd(Rank& rank, Row& row, const TraceEvent& event) {
  RankHistory& facts = FactsOf(rank);
  facts.operations.push_back({.tensor = row.tensor,
                              .submit_ns = rank.now_ns,
                              .end_ns = rank.now_ns,
                              .bytes = Count(event.args, "bytes"),
                              .before = facts.spent});
}

void FactsCollector::Late(const Rank& rank, const Row& row, const TraceEvent& event) {
  const int64_t late = Time(event.args, "late_ns");
  facts_.late.push_back({NanosecondsOf(event.ts).value_or(0), late,
                         std::max(late, Time(event.args, "first_waited_ns")),
                         static_cast<uint32_t>(rank.place), row.tensor});
}

TraceFacts FactsCollector::Finish() {
  for (auto& [pid, rank] : ranks_) {
    if (rank.waits > 0) FactsOf(rank).waits.push_back({rank.wait_begin_ns, rank.now_ns});
  }
  std::sort(facts_.late.begin(), facts_.late.end(),
            [](const LateMark& a, const LateMark& b) { return a.ns < b.ns; });
  return std::move(facts_);
}

}  // namespace hvd
