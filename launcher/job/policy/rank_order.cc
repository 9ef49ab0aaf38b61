#include "launcher/job/policy/rank_order.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace hvd {
namespace {

constexpr uint32_t kNew = UINT32_MAX;
constexpr uint64_t kNever = UINT64_MAX;

uint32_t LastRank(const Candidate& candidate) { return candidate.last_rank.value_or(kNew); }

uint64_t Since(const Candidate& candidate) {
  return candidate.last_rank ? candidate.since : kNever;
}

std::tuple<uint64_t, uint32_t> Seniority(const Candidate& candidate) {
  return {Since(candidate), LastRank(candidate)};
}

// The candidates of a host, in the order of seats.
using HostPart = std::vector<Candidate>;

std::vector<HostPart> PartsOf(std::vector<Candidate> candidates) {
  std::ranges::sort(candidates, {},
                    [](const Candidate& c) { return std::tuple(c.host, c.seat, c.worker); });
  std::vector<HostPart> parts;
  for (const Candidate& candidate : candidates) {
    if (parts.empty() || parts.back().front().host != candidate.host) parts.emplace_back();
    parts.back().push_back(candidate);
  }
  return parts;
}

uint32_t LowestLastRank(const HostPart& part) {
  return LastRank(std::ranges::min(part, {}, LastRank));
}

Candidate SeniorOf(const HostPart& part) { return std::ranges::min(part, {}, Seniority); }

// The most senior candidate's host comes first, led by a candidate of that seniority.
void PutSeniorFirst(std::vector<HostPart>& parts) {
  const auto first = std::ranges::min_element(
      parts, {}, [](const HostPart& part) { return Since(SeniorOf(part)); });
  if (first == parts.end()) return;
  std::rotate(parts.begin(), first, first + 1);
  HostPart& part = parts.front();
  if (Since(part.front()) != Since(SeniorOf(part))) std::ranges::stable_sort(part, {}, Seniority);
}

}  // namespace

bool IsSenior(const Candidate& a, const Candidate& b) { return Seniority(a) < Seniority(b); }

std::vector<RankRun> Generation::Layout() const {
  std::vector<RankPlace> places;
  uint32_t number = 0;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (rank > 0 && members[rank - 1].place.host != members[rank].place.host) ++number;
    places.push_back({number, members[rank].place.local_rank});
  }
  return RunsOf(places);
}

Generation GenerationOf(const Plan& plan) {
  Generation generation{{}, plan.homogeneous};
  for (const Placement& place : plan.ranks) generation.members.push_back({place.rank, place});
  return generation;
}

Generation ArrangeRanks(std::vector<Candidate> candidates) {
  std::vector<HostPart> parts = PartsOf(std::move(candidates));
  std::ranges::stable_sort(parts, {}, LowestLastRank);
  PutSeniorFirst(parts);
  std::map<uint32_t, uint32_t> cross_sizes;  // by local rank
  for (const HostPart& part : parts) {
    for (uint32_t local = 0; local < part.size(); ++local) ++cross_sizes[local];
  }
  Generation generation;
  std::map<uint32_t, uint32_t> hosts_before;  // by local rank: hosts so far that have it
  for (const HostPart& part : parts) {
    const auto local_size = static_cast<uint32_t>(part.size());
    generation.homogeneous &= local_size == parts[0].size();
    for (uint32_t local = 0; local < local_size; ++local) {
      const Placement place{generation.size(), part[local].host,      local,
                            local_size,        hosts_before[local]++, cross_sizes[local]};
      generation.members.push_back({part[local].worker, place});
    }
  }
  return generation;
}

}  // namespace hvd
