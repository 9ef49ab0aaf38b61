#include "launcher/job/report/first_cause.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace hvd {
namespace {

struct PossibleCause {
  const Departure* departure = nullptr;
  std::optional<HostClock::Moment> moment;  // by our clock, if that is known

  // The cause to name comes first.
  auto Order() const {
    return std::tuple(!departure->by_signal, !moment.has_value(),
                      moment ? moment->at : TimePoint::max(), departure->rank);
  }
};

// The first failure of each host; those that happened after an end elsewhere was known count only
// if there are no others.
std::vector<PossibleCause> FirstOfEachHost(const std::vector<Departure>& departures,
                                           const std::vector<HostClock>& clocks) {
  const bool some_are_none =
      std::ranges::any_of(departures, [](const Departure& d) { return !d.is_consequence; });
  std::map<uint32_t, const Departure*> first;
  for (const Departure& departure : departures) {
    if (some_are_none && departure.is_consequence) continue;
    const Departure*& earliest = first[departure.host];
    if (earliest == nullptr || departure.stamp_ns < earliest->stamp_ns) earliest = &departure;
  }
  std::vector<PossibleCause> candidates;
  for (const auto& [host, departure] : first)
    candidates.push_back({departure, clocks[host].Convert(departure->stamp_ns)});
  return candidates;
}

}  // namespace

std::optional<uint32_t> FirstCause(const std::vector<Departure>& departures,
                                   const std::vector<HostClock>& clocks) {
  std::vector<PossibleCause> candidates = FirstOfEachHost(departures, clocks);
  if (candidates.empty()) return std::nullopt;
  // By this time the first one had certainly happened.
  TimePoint by = TimePoint::max();
  for (const PossibleCause& c : candidates) {
    if (c.moment) by = std::min(by, c.moment->at + c.moment->uncertainty);
  }
  std::erase_if(candidates, [by](const PossibleCause& c) {
    return c.moment && c.moment->at - c.moment->uncertainty > by;
  });
  const auto best = std::ranges::min_element(candidates, {}, &PossibleCause::Order);
  return best->departure->rank;
}

}  // namespace hvd
