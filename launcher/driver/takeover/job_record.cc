#include "launcher/driver/takeover/job_record.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "launcher/job/host_records/host_clock.h"
#include "launcher/job/host_records/host_stages.h"
#include "runtime/base/time_numbers.h"
#include "runtime/net/fields.h"

namespace hvd {
namespace {

// Writes or reads fields; the structs list theirs in RecordFields, for both.
template <typename Fields>
class Record {
 public:
  static constexpr bool kReads = std::same_as<Fields, FieldReader>;

  explicit Record(Fields fields) : fields_(std::move(fields)) {}

  void operator()(auto&... values) { (Value(values), ...); }
  Fields& fields() { return fields_; }

 private:
  template <typename T>
  void Value(T& value) {
    using Plain = std::remove_const_t<T>;
    if constexpr (ScalarField<Plain> || std::same_as<Plain, std::string>) {
      fields_(value);
    } else if constexpr (requires { Plain::RecordFields(*this, value); }) {
      Plain::RecordFields(*this, value);
    } else {
      RecordFields(*this, value);
    }
  }
  void Value(MaybeConst<Duration> auto& duration) {
    int64_t count = duration.count();
    fields_(count);
    if constexpr (kReads) duration = Duration(count);
  }
  void Value(MaybeConst<TimePoint> auto& time) {
    int64_t count = time.time_since_epoch().count();
    fields_(count);
    if constexpr (kReads) time = TimePoint(Duration(count));
  }
  template <typename T>
  void Value(std::optional<T>& value) {
    uint8_t there = value ? 1 : 0;
    fields_(there);
    if (there != 0) Value(value.emplace());
  }
  template <typename T>
  void Value(const std::optional<T>& value) {
    const uint8_t there = value ? 1 : 0;
    fields_(there);
    if (value) Value(*value);
  }
  template <typename First, typename Second>
  void Value(const std::pair<First, Second>& pair) {
    Value(pair.first);
    Value(pair.second);
  }
  template <typename First, typename Second>
  void Value(std::pair<First, Second>& pair) {
    Value(pair.first);
    Value(pair.second);
  }
  void Value(const std::vector<bool>& list) {
    std::string bits;
    for (const bool bit : list) bits += bit ? '1' : '0';
    fields_(bits);
  }
  void Value(std::vector<bool>& list) {
    std::string bits;
    fields_(bits);
    list.clear();
    for (const char bit : bits) list.push_back(bit == '1');
  }
  template <typename T>
  void Value(std::vector<T>& list) {
    Read(list, [&] { Value(list.emplace_back()); });
  }
  template <typename T>
  void Value(std::deque<T>& list) {
    Read(list, [&] { Value(list.emplace_back()); });
  }
  template <typename T>
  void Value(std::set<T>& list) {
    Read(list, [&] {
      T item{};
      Value(item);
      list.insert(std::move(item));
    });
  }
  template <typename Key, typename T>
  void Value(std::map<Key, T>& list) {
    Read(list, [&] {
      std::pair<Key, T> item{};
      Value(item);
      list.insert(std::move(item));
    });
  }
  template <typename T>
  void Value(const std::vector<T>& list) {
    Write(list);
  }
  template <typename T>
  void Value(const std::deque<T>& list) {
    Write(list);
  }
  template <typename T>
  void Value(const std::set<T>& list) {
    Write(list);
  }
  template <typename Key, typename T>
  void Value(const std::map<Key, T>& list) {
    Write(list);
  }

  void Write(const auto& list) {
    fields_(static_cast<uint32_t>(list.size()));
    for (const auto& item : list) {
      fields_(uint8_t{kItem});
      Value(item);
    }
  }
  // A false count allocates nothing: each item begins with a mark.
  void Read(auto& list, auto read_one) {
    list.clear();
    uint32_t count = 0;
    fields_(count);
    for (uint32_t i = 0; i < count && !failed_; ++i) {
      uint8_t mark = 0;
      fields_(mark);
      if (mark != kItem) {
        failed_ = true;
        return;
      }
      read_one();
    }
  }

  static constexpr uint8_t kItem = 0xa5;
  Fields fields_;
  bool failed_ = false;
};

void RecordFields(auto& f, MaybeConst<HostSlots> auto& m) {
  f(m.host, m.slots, m.user, m.port, m.max_slots, m.remote, m.slots_known);
}
void RecordFields(auto& f, MaybeConst<Placement> auto& m) {
  f(m.rank, m.host, m.local_rank, m.local_size, m.cross_rank, m.cross_size);
}
void RecordFields(auto& f, MaybeConst<Member> auto& m) { f(m.worker, m.place); }
void RecordFields(auto& f, MaybeConst<Generation> auto& m) { f(m.members, m.homogeneous); }
void RecordFields(auto& f, MaybeConst<Plan> auto& m) { f(m.hosts, m.ranks, m.homogeneous); }
// The parts of a stall verdict that the report shows, as text.
void RecordFields(auto& f, MaybeConst<JobFailure> auto& m) {
  f(m.kind, m.exit_code, m.rank, m.peer, m.host, m.reason, m.signal, m.verdict.details,
    m.verdict.never_ends);
}
void RecordFields(auto& f, MaybeConst<InitWait> auto& m) { f(m.since, m.is_spare); }
void RecordFields(auto& f, MaybeConst<Parting> auto& m) { f(m.stamp_ns, m.is_consequence); }
void RecordFields(auto& f, MaybeConst<Loss> auto& m) { f(m.when_asked, m.reason, m.doing); }
void RecordFields(auto& f, MaybeConst<WorkerEnd> auto& m) {
  f(m.by_signal, m.value, m.by_us, m.out_of_memory, m.last_stderr, m.commits);
}
void RecordFields(auto& f, MaybeConst<RankRecord> auto& m) {
  f(m.state, m.stay, m.pid, m.rank, m.in_generation, m.first_generation, m.init, m.parting, m.loss,
    m.end, m.end_by, m.forgiven, m.awaited, m.init_failed);
}
void RecordFields(auto& f, MaybeConst<ElasticHost> auto& m) {
  f(m.listing, m.slots, m.listed, m.ready, m.gone, m.trouble);
}
void RecordFields(auto& f, MaybeConst<Restart> auto& m) { f(m.kill_at, m.killing); }
void RecordFields(auto& f, MaybeConst<ElasticState> auto& m) {
  f(m.ledger, m.budget, m.failure_kinds, m.any_committed, m.listed_once, m.listing,
    m.source_trouble, m.hosts, m.generation, m.running, m.broken, m.any_joined, m.any_finished,
    m.time, m.resets, m.restart, m.restarts, m.restarted, m.resize_since, m.resize_at, m.started_at,
    m.incomplete_since, m.failed_generation);
  f(m.notice, m.notice_generation, m.update, m.holding, m.most_commits, m.stop_signal, m.stop_asked,
    m.stop_grace);
  f(m.ledger_changes_at, m.stop_by, m.enough_since, m.growth_at, m.next_overdue, m.short_since,
    m.late_since, m.last_text, m.lost_cause, m.next_report);
}
void RecordFields(auto& f, MaybeConst<JobState> auto& m) {
  f(m.plan, m.phase, m.ranks, m.host_open, m.dismissed, m.dismissed_by, m.generation, m.failure,
    m.ending, m.stopped, m.elastic);
  f(m.interrupts, m.interrupting, m.terminating, m.killing, m.asked_at, m.deadline, m.timeout_at,
    m.leave_by, m.paused_at);
}

bool IsSound(const JobState& state) {
  const size_t hosts = state.plan.hosts.size();
  if (state.elastic.hosts.size() != hosts || state.host_open.size() != hosts ||
      state.dismissed.size() != hosts || state.ranks.size() != state.plan.ranks.size())
    return false;
  for (const Placement& place : state.plan.ranks) {
    if (place.host >= hosts) return false;
  }
  for (const Member& member : state.elastic.generation.members) {
    if (member.worker >= state.ranks.size()) return false;
  }
  return true;
}

}  // namespace

std::string EncodeJobState(const JobState& state) {
  Record<FieldWriter> record{FieldWriter()};
  record(state);
  return record.fields().Take();
}

bool DecodeJobState(std::string_view bytes, JobState& state, TimePoint now) {
  Record<FieldReader> record{FieldReader(bytes)};
  record(state);
  if (!record.fields().AtEnd() || !IsSound(state)) return false;
  state.elastic.ledger.GoOn();
  state.Recount();
  state.facts.assign(state.plan.hosts.size(), {});
  for (uint32_t host = 0; host < state.plan.hosts.size(); ++host) {
    const bool remote = state.elastic.hosts[host].listing.remote;
    state.clocks.push_back(remote ? HostClock() : HostClock::Ours());
    state.stages.Add(now);
    state.stages.Enter(host, HostStage::kReady, now);
  }
  return true;
}

}  // namespace hvd
