#include "launcher/stall/flight_rounds.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "launcher/stall/verdict/flight_verdict.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// More than an agent needs (kDumpLimit of FlightReader).
constexpr Duration kFlightLimit = std::chrono::seconds(7);

}  // namespace

void FlightRounds::Begin(ScriptStall stall, const std::vector<uint32_t>& hosts, TimePoint now) {
  const bool is_new = stall.is_new || (stall_ && stall_->is_new);
  const bool asks = !stall.ends && !round_.is_open();
  stall_ = std::move(stall);
  stall_->is_new = is_new;
  if (asks) return AskAll(hosts, now);
  if (stall_->ends) round_.Begin({}, now);
}

void FlightRounds::Suspect(const std::vector<uint32_t>& hosts, Duration warning, TimePoint now) {
  if (round_.is_open() || now < next_look_) return;
  next_look_ = now + warning;
  AskAll(hosts, now);
}

void FlightRounds::Forget() {
  of_failure_.clear();
  seen_open_.clear();
  reported_.clear();
}

void FlightRounds::AskAll(const std::vector<uint32_t>& hosts, TimePoint now) {
  records_.clear();
  const AskFlight question{round_.Begin(hosts, now + kFlightLimit)};
  for (uint32_t host : hosts) ask_(host, question);
}

void FlightRounds::Handle(uint32_t host, const FlightReply& answer) {
  if (answer.number == 0) {
    for (const FlightRecord& record : answer.records) of_failure_[record.rank] = record;
  } else if (round_.NoteAnswer(host, answer.number)) {
    records_.insert(records_.end(), answer.records.begin(), answer.records.end());
  }
}

std::optional<ScriptStall> FlightRounds::Result(uint32_t size, TimePoint now) {
  if (!round_.Close(now)) return std::nullopt;
  if (!stall_) return Compare(size, now);
  std::optional<ScriptStall> stall = std::exchange(stall_, std::nullopt);
  stall->verdict.details += ExplainFlight(records_, size);
  return stall;
}

// A collective that had not ended at the last reading, a warning time ago, and still has not.
std::optional<ScriptStall> FlightRounds::Compare(uint32_t size, TimePoint now) {
  const std::map<std::string, Open> before = std::exchange(seen_open_, {});
  std::set<std::string> same;
  std::string key;
  Duration longest{};
  for (const auto& [group, number] : OpenCollectives(records_)) {
    const auto found = before.find(group);
    const bool is_same = found != before.end() && found->second.number == number;
    const TimePoint seen = is_same ? found->second.seen : now;
    seen_open_[group] = {number, seen};
    if (!is_same) continue;
    same.insert(group);
    key += Format("{}\n{}\n", group, number);
    longest = std::max(longest, now - seen);
  }
  if (std::exchange(reported_, key) == key || key.empty()) return std::nullopt;
  std::vector<FlightRecord> records = records_;
  for (FlightRecord& record : records)
    std::erase_if(record.groups, [&](const auto& group) { return !same.contains(KeyOf(group)); });
  ScriptStall stall;
  stall.verdict.sentence = Format("a collective of PyTorch has not ended for {} s",
                                  std::chrono::floor<std::chrono::seconds>(longest).count());
  stall.verdict.details = ExplainFlight(records, size);
  return stall;
}

std::string FlightRounds::LinesOfFailure(uint32_t size) const {
  std::vector<FlightRecord> records;
  for (const auto& [rank, record] : of_failure_) records.push_back(record);
  return ExplainFlight(records, size);
}

}  // namespace hvd
