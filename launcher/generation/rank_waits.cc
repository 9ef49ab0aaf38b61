#include "launcher/generation/rank_waits.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "configs/message_text.h"

namespace hvd {
namespace {

// A waiting thread wakes up ten times a second. One that was not seen for this long no longer
// waits, or does not run.
constexpr int64_t kGoneMs = 5000;
// A stall is examined this long before a rank ends its world because of it.
constexpr int64_t kBeforeTheEndMs = 1500;

int64_t MillisecondsSince(int64_t ns, TimePoint now) {
  return (now.time_since_epoch().count() - ns) / 1'000'000;
}

template <size_t N>
std::string Text(const char (&text)[N]) {
  return Printable(std::string(text, ::strnlen(text, N)), N);
}

std::vector<OverdueWait> Waits(const RankBlock& block) {
  std::vector<OverdueWait> waits;
  for (const WaitRecord& record : block.stalls.waits) {
    if (std::optional<OverdueWait> wait = ReadWait(record)) waits.push_back(std::move(*wait));
  }
  return waits;
}

WaitFacts FactsOf(const OverdueWait& wait, TimePoint now) {
  WaitFacts facts;
  facts.key = wait.key;
  facts.id = wait.id;
  facts.name = Printable(wait.name, wait.name.size());
  facts.set = wait.set;
  facts.waited_ms = MillisecondsSince(wait.since_ns, now);
  facts.seen_ms = MillisecondsSince(wait.seen_ns, now);
  facts.submitted = wait.submitted ? 1 : 0;
  facts.awaited = wait.awaited;
  return facts;
}

// Whether every thread that ever submitted is among those that wait.
bool AllWait(const RankBlock& block, const std::vector<OverdueWait>& waits) {
  const std::optional<std::vector<uint32_t>> submitters = ReadSubmitters(block.stalls);
  return submitters && std::ranges::all_of(*submitters, [&](uint32_t thread) {
           return std::ranges::find(waits, thread, &OverdueWait::thread) != waits.end();
         });
}

// The length from which a wait on it is reported; 0: never.
int64_t ReportedAfter(const StallBoard& board) {
  const auto warning = static_cast<int64_t>(board.warning_ms.load(std::memory_order_relaxed));
  const auto shutdown = static_cast<int64_t>(board.shutdown_ms.load(std::memory_order_relaxed));
  if (shutdown <= 0) return warning;
  const int64_t before_end = std::max(shutdown / 2, shutdown - kBeforeTheEndMs);
  return warning <= 0 ? before_end : std::min(warning, before_end);
}

}  // namespace

RankFacts FactsFromPage(const RankBlock& block, TimePoint now) {
  RankFacts facts;
  facts.submitted = block.last.sequence.load(std::memory_order_acquire) / 2;
  facts.last = Text(block.last.name);
  facts.finished = block.stalls.finished.load(std::memory_order_acquire);
  facts.last_finished = Text(block.stalls.finished_name);
  std::vector<OverdueWait> waits = Waits(block);
  const auto gone = [&](const OverdueWait& w) {
    return MillisecondsSince(w.seen_ns, now) > kGoneMs;
  };
  std::erase_if(waits, gone);
  if (waits.empty()) return facts;
  for (const OverdueWait& wait : waits) facts.waits.push_back(FactsOf(wait, now));
  const std::optional<std::vector<uint64_t>> pending = ReadPending(block.stalls);
  facts.all_wait = pending && AllWait(block, waits) ? 1 : 0;
  if (pending) facts.pending = *pending;
  return facts;
}

Duration LongestWait(const RankBlock& block, TimePoint now) {
  int64_t longest = 0;
  for (const OverdueWait& wait : Waits(block)) {
    if (MillisecondsSince(wait.seen_ns, now) <= kGoneMs)
      longest = std::max(longest, MillisecondsSince(wait.since_ns, now));
  }
  return std::chrono::milliseconds(longest);
}

std::optional<OverdueWait> StallWatch::FirstOverdue(const RankBlock& block, uint64_t generation,
                                                    TimePoint now) {
  constexpr int64_t kFirstMs = 10'000;
  if (first_reported_ == generation || block.stalls.finished.load(std::memory_order_acquire) != 0)
    return std::nullopt;
  for (const OverdueWait& wait : Waits(block)) {
    if (MillisecondsSince(wait.since_ns, now) < kFirstMs ||
        MillisecondsSince(wait.seen_ns, now) > kGoneMs)
      continue;
    first_reported_ = generation;
    return wait;
  }
  return std::nullopt;
}

std::optional<OverdueWait> StallWatch::Overdue(const RankBlock& block, TimePoint now) {
  const int64_t after = ReportedAfter(block.stalls);
  if (after <= 0) return std::nullopt;
  const std::vector<OverdueWait> waits = Waits(block);
  std::erase_if(next_ms_, [&](const auto& reported) {
    return std::ranges::find(waits, reported.first, &OverdueWait::id) == waits.end();
  });
  for (const OverdueWait& wait : waits) {
    const int64_t waited = MillisecondsSince(wait.since_ns, now);
    if (waited < after || MillisecondsSince(wait.seen_ns, now) > kGoneMs) continue;
    int64_t& next_ms = next_ms_[wait.id];
    if (waited < next_ms) continue;
    next_ms = waited + after;
    return wait;
  }
  return std::nullopt;
}

}  // namespace hvd
