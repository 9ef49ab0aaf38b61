#include "launcher/job/policy/host_ledger.h"

#include <algorithm>

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// CooldownAfter doubles the shortest time from the first failure on.
constexpr CooldownRange kHostCooldown{milliseconds(500), seconds(60)};
constexpr CooldownRange kSlotCooldown{milliseconds(500), seconds(60)};

}  // namespace

HostLedger::HostLedger(std::optional<CooldownRange> range, uint64_t seed)
    : workers_cost_hosts_(range.has_value()),
      range_(range.value_or(kHostCooldown)),
      random_(seed) {}

double HostLedger::Jitter() {
  ++draws_;
  return std::uniform_real_distribution<double>(0.0, 1.0)(random_);
}

void HostLedger::NoteHostFailure(const std::string& host, TimePoint now) {
  Place& place = hosts_[host];
  ++place.failures;
  place.usable_from = now + CooldownAfter(range_, place.failures, Jitter());
}

void HostLedger::NoteSlotFailure(const std::string& host, uint32_t slot, TimePoint now) {
  Place& place = slots_[SlotKey(host, slot)];
  if (place.failures++ == 0) return;
  place.usable_from = now + CooldownAfter(kSlotCooldown, place.failures - 1, 0);
}

void HostLedger::NoteWorkerFailure(const std::string& host, uint32_t slot, TimePoint now) {
  NoteSlotFailure(host, slot, now);
  if (workers_cost_hosts_ && MayUse(host, now)) NoteHostFailure(host, now);
}

void HostLedger::NoteGood(const std::string& host, uint32_t slot, TimePoint now) {
  if (MayUse(host, now)) hosts_.erase(host);
  slots_.erase(SlotKey(host, slot));
}

void HostLedger::Shift(Duration away) {
  for (auto& [host, place] : hosts_) place.usable_from += away;
  for (auto& [slot, place] : slots_) place.usable_from += away;
}

TimePoint HostLedger::UsableFrom(const std::string& host) const {
  const auto place = hosts_.find(host);
  return place == hosts_.end() ? TimePoint() : place->second.usable_from;
}

bool HostLedger::MayUse(const std::string& host, TimePoint now) const {
  return UsableFrom(host) <= now;
}

bool HostLedger::MayUse(const std::string& host, uint32_t slot, TimePoint now) const {
  if (!MayUse(host, now)) return false;
  const auto place = slots_.find(SlotKey(host, slot));
  return place == slots_.end() || place->second.usable_from <= now;
}

std::optional<TimePoint> HostLedger::NextChange(TimePoint now) const {
  std::optional<TimePoint> next;
  const auto look = [&](const auto& places) {
    for (const auto& [key, place] : places) {
      if (place.usable_from > now)
        next = std::min(next.value_or(place.usable_from), place.usable_from);
    }
  };
  look(hosts_);
  look(slots_);
  return next;
}

}  // namespace hvd
