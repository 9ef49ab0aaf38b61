#include "launcher/driver/takeover/takeover_record.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/net/fields.h"

namespace hvd {

void Fields(auto& f, MaybeConst<TakeoverHost> auto& m) {
  f(m.there.hvdrun, m.there.resume_address, m.has_rank, m.addresses, m.free_port);
}
void Fields(auto& f, MaybeConst<TakeoverRecord> auto& m) {
  f(m.pid, m.key, m.begun_ns, m.host_names);
  // Placement has its Fields with the messages.
  f(m.homogeneous, m.hosts, m.master_address, m.master_port, m.interrupts, m.failure_kind,
    m.failure_code, m.failure_rank, m.failure_peer, m.failure_host, m.failure_reason, m.is_over,
    m.exit_code, m.report, m.job);
}

namespace {

// The places of the ranks follow the other fields, as numbers.
constexpr size_t kNumbersOfPlace = 6;

std::vector<uint32_t> NumbersOf(const std::vector<Placement>& ranks) {
  std::vector<uint32_t> numbers;
  for (const Placement& p : ranks)
    numbers.insert(numbers.end(),
                   {p.rank, p.host, p.local_rank, p.local_size, p.cross_rank, p.cross_size});
  return numbers;
}

// With their stamps, by which they are sorted: clocks of hosts differ, but the order of events on
// one host is right.
template <typename Event>
void AddStamped(std::vector<Event> events, std::vector<std::pair<int64_t, JobEvent>>& to) {
  for (Event& event : events) to.emplace_back(event.noticed_ns, std::move(event));
}

}  // namespace

std::string EncodeTakeoverRecord(const TakeoverRecord& record) {
  FieldWriter writer;
  Fields(writer, record);
  writer(NumbersOf(record.ranks));
  return writer.Take();
}

std::optional<TakeoverRecord> DecodeTakeoverRecord(std::string_view bytes) {
  FieldReader reader(bytes);
  TakeoverRecord record;
  std::vector<uint32_t> numbers;
  Fields(reader, record);
  reader(numbers);
  if (!reader.AtEnd() || numbers.size() % kNumbersOfPlace != 0) return std::nullopt;
  for (size_t at = 0; at < numbers.size(); at += kNumbersOfPlace)
    record.ranks.push_back({numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3],
                            numbers[at + 4], numbers[at + 5]});
  return record;
}

Plan PlanOf(const TakeoverRecord& record) {
  return {record.host_names, record.ranks, record.homogeneous != 0};
}

void SetFailure(TakeoverRecord& record, const JobFailure& failure) {
  record.failure_kind = static_cast<int32_t>(failure.kind);
  record.failure_code = failure.exit_code;
  record.failure_rank = failure.rank;
  record.failure_peer = failure.peer;
  record.failure_host = failure.host;
  record.failure_reason = failure.reason;
}

namespace {

JobFailure FailureOf(const TakeoverRecord& record) {
  JobFailure failure;
  failure.kind = static_cast<JobFailure::Kind>(record.failure_kind);
  failure.exit_code = record.failure_code;
  failure.rank = record.failure_rank;
  failure.peer = record.failure_peer;
  failure.host = record.failure_host;
  failure.reason = record.failure_reason;
  return failure;
}

}  // namespace

Status CheckSnapshot(const Plan& plan, uint32_t host, const HostSnapshot& snapshot) {
  const auto own = [&](uint32_t rank) {
    return rank < plan.ranks.size() && plan.ranks[rank].host == host;
  };
  const auto all_own = [&](const auto& list) {
    return std::ranges::all_of(list, [&](const auto& one) { return own(one.rank); });
  };
  if (all_own(snapshot.workers) && all_own(snapshot.left) && all_own(snapshot.lost) &&
      all_own(snapshot.exited))
    return Status::Ok();
  return InvalidArgument("its agent describes a rank that it does not have");
}

std::vector<JobEvent> AdoptionEvents(const TakeoverRecord& record,
                                     const std::vector<std::optional<HostSnapshot>>& snapshots) {
  Adopted adopted;
  adopted.begun = TimePoint(Duration(record.begun_ns));
  // A failure that the previous driver had recorded, and that no rank's end implies.
  const auto kind = static_cast<JobFailure::Kind>(record.failure_kind);
  if (record.failure_kind >= 0 && kind != JobFailure::Kind::kRank &&
      kind != JobFailure::Kind::kInterrupt) {
    adopted.failure = FailureOf(record);
  }
  for (const auto& snapshot : snapshots) {
    if (!snapshot) continue;
    adopted.generation = std::max(adopted.generation, snapshot->generation);
    if (snapshot->started == 0) adopted.incomplete = true;
  }
  std::vector<JobEvent> events{adopted};
  const uint64_t generation = adopted.generation;
  // All of them were in the last generation; otherwise it would not have begun.
  for (const auto& snapshot : snapshots) {
    if (!snapshot) continue;
    for (const WorkerSnapshot& worker : snapshot->workers) {
      if (worker.pid != 0) events.emplace_back(WorkerStarted{worker.rank, worker.pid});
    }
  }
  for (uint32_t rank = 0; generation > 0 && rank < record.ranks.size(); ++rank)
    events.emplace_back(RankJoined{rank});
  std::vector<std::pair<int64_t, JobEvent>> ends;
  for (const auto& snapshot : snapshots) {
    if (!snapshot) continue;
    if (snapshot->generation == generation) {
      AddStamped(snapshot->left, ends);
      AddStamped(snapshot->lost, ends);
    }
    AddStamped(snapshot->exited, ends);
  }
  std::ranges::stable_sort(ends, {}, [](const auto& end) { return end.first; });
  for (auto& [stamp, event] : ends) events.push_back(std::move(event));
  // Ranks of a host whose agent had not begun the last generation wait for it.
  for (const auto& snapshot : snapshots) {
    if (!snapshot || snapshot->generation != generation) continue;
    for (const WorkerSnapshot& worker : snapshot->workers) {
      if (worker.waiting != 0) events.emplace_back(RankJoined{worker.rank});
    }
  }
  for (const int32_t signal : record.interrupts) events.emplace_back(Interrupted{signal});
  return events;
}

}  // namespace hvd
