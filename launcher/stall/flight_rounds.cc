#include "launcher/stall/flight_rounds.h"

#include <utility>

#include "launcher/verdict/flight_verdict.h"

namespace hvd {
namespace {

// More than an agent needs (kDumpLimit of FlightReader).
constexpr Duration kFlightLimit = std::chrono::seconds(7);

}  // namespace

void FlightRounds::Begin(ScriptStall stall, const std::vector<uint32_t>& hosts, TimePoint now) {
  const bool is_new = stall.is_new || (stall_ && stall_->is_new);
  const bool asks = !stall.ends && !stall_;
  stall_ = std::move(stall);
  stall_->is_new = is_new;
  if (stall_->ends) deadline_ = now;
  if (!asks) return;
  deadline_ = now + kFlightLimit;
  records_.clear();
  waiting_ = {hosts.begin(), hosts.end()};
  ++number_;
  for (uint32_t host : hosts) ask_(host, AskFlight{number_});
}

void FlightRounds::Take(uint32_t host, const FlightTold& answer) {
  if (answer.number == 0) {
    for (const FlightRecord& record : answer.records) of_failure_[record.rank] = record;
  } else if (answer.number == number_ && waiting_.erase(host) != 0) {
    records_.insert(records_.end(), answer.records.begin(), answer.records.end());
  }
}

std::optional<ScriptStall> FlightRounds::Result(uint32_t size, TimePoint now) {
  if (!stall_ || (!waiting_.empty() && now < deadline_)) return std::nullopt;
  std::optional<ScriptStall> stall = std::exchange(stall_, std::nullopt);
  waiting_.clear();
  stall->verdict.details += ExplainFlight(records_, size);
  return stall;
}

std::string FlightRounds::LinesOfFailure(uint32_t size) const {
  std::vector<FlightRecord> records;
  for (const auto& [rank, record] : of_failure_) records.push_back(record);
  return ExplainFlight(records, size);
}

}  // namespace hvd
