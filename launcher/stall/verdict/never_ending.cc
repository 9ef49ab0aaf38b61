#include <algorithm>

#include "launcher/stall/verdict/verdict.h"

namespace hvd {
namespace {

// A waiting thread wakes up ten times a second; one that was not seen for this long may be
// elsewhere.
constexpr int64_t kFreshMs = 1500;

bool HasEnded(const std::optional<RankFacts>& facts) { return facts && facts->in_world == 0; }

bool WaitsForGood(const RankFacts& facts) {
  if (facts.in_world == 0 || facts.all_wait == 0 || facts.waits.empty()) return false;
  if (facts.state == "T" || facts.state == "t") return false;  // its last state may be outdated
  return std::ranges::all_of(facts.waits, [](const WaitFacts& wait) {
    return wait.submitted == 0 && wait.seen_ms <= kFreshMs;
  });
}

// The same waits, and nothing was submitted meanwhile.
bool StillWaits(const std::optional<RankFacts>& before, const std::optional<RankFacts>& now) {
  if (!before || !now || !WaitsForGood(*before) || !WaitsForGood(*now)) return false;
  if (before->submitted != now->submitted || before->pid != now->pid) return false;
  return std::ranges::is_permutation(before->waits, now->waits, {}, &WaitFacts::id, &WaitFacts::id);
}

bool HasSubmitted(const RankFacts& facts, uint64_t key) {
  return std::ranges::find(facts.pending, key) != facts.pending.end();
}

// The wait needs a rank that never submits what it waits for.
bool IsHopeless(const WaitFacts& wait, const WorldFacts& now, const std::set<uint32_t>& stuck) {
  return std::ranges::any_of(wait.awaited, [&](uint32_t rank) {
    if (rank >= now.ranks.size()) return false;
    if (HasEnded(now.ranks[rank])) return true;
    return stuck.contains(rank) && !HasSubmitted(*now.ranks[rank], wait.key);
  });
}

}  // namespace

std::set<uint32_t> NeverEnding(const WorldFacts& before, const WorldFacts& now) {
  std::set<uint32_t> stuck;
  for (uint32_t rank = 0; rank < std::min(before.ranks.size(), now.ranks.size()); ++rank) {
    if (StillWaits(before.ranks[rank], now.ranks[rank])) stuck.insert(rank);
  }
  // Removes those that may continue until only those are left that depend on each other.
  const auto has_hope = [&](uint32_t rank) {
    return std::ranges::any_of(now.ranks[rank]->waits, [&](const WaitFacts& wait) {
      return !IsHopeless(wait, now, stuck);
    });
  };
  for (bool changed = true; changed;) {
    const auto found = std::ranges::find_if(stuck, has_hope);
    changed = found != stuck.end();
    if (changed) stuck.erase(found);
  }
  return stuck;
}

}  // namespace hvd
