#include "launcher/live/job_view.h"

#include <algorithm>
#include <cstddef>

#include "runtime/trace/event_names.h"

namespace hvd {
namespace {

// Minimum difference of the shares of time spent waiting; less is noise.
constexpr double kClearlyMore = 0.05;

}  // namespace

const char* ActivityText(RankActivity activity) {
  switch (activity) {
    case RankActivity::kComputing: return "computing";
    case RankActivity::kWaiting: return "waiting";
    case RankActivity::kStopped: return "stopped";
    case RankActivity::kLeft: return "left";
    default: return "outside";
  }
}

void Fill(RankView* view, const WorkerCounts& counts) {
  view->state = ActivityText(counts.activity);
  view->operations = counts.operations;
  view->bytes = counts.bytes;
  view->steps = counts.steps;
  view->commits = counts.commits;
  view->last = counts.last;
  view->waited_seconds = static_cast<double>(counts.waited_ns) / 1e9;
  view->last_submitted = counts.last_submitted;
  view->collective = counts.last_submitted.empty() ? "" : CollectiveName(counts.collective);
}

std::optional<RankRates> RatesBetween(const WorkerCounts& before, const WorkerCounts& now,
                                      int64_t elapsed_ns) {
  if (elapsed_ns <= 0 || now.operations < before.operations || now.bytes < before.bytes ||
      now.steps < before.steps || now.last < before.last)
    return std::nullopt;
  const double seconds = static_cast<double>(elapsed_ns) / 1e9;
  const auto more = [](uint64_t a, uint64_t b) { return static_cast<double>(b - a); };
  RankRates rates;
  rates.operations = more(before.operations, now.operations) / seconds;
  rates.bytes = more(before.bytes, now.bytes) / seconds;
  rates.steps = more(before.steps, now.steps) / seconds;
  const double waited = static_cast<double>(now.waited_ns - before.waited_ns) / 1e9;
  rates.waiting = std::clamp(waited / seconds, 0.0, 1.0);
  const double operations = more(before.operations, now.operations);
  if (operations > 0) rates.last = std::min(1.0, more(before.last, now.last) / operations);
  return rates;
}

std::optional<Straggler> FindStraggler(const std::vector<RankView>& ranks) {
  std::vector<const RankView*> seen;
  for (const RankView& rank : ranks) {
    if (rank.rates && rank.state != "left" && rank.state != "ended") seen.push_back(&rank);
  }
  if (seen.size() < 2) return std::nullopt;
  std::sort(seen.begin(), seen.end(), [](const RankView* a, const RankView* b) {
    return a->rates->waiting < b->rates->waiting;
  });
  const size_t others = seen.size() - 1;
  const double median = seen[(others + 1) / 2]->rates->waiting;
  const double least = seen.front()->rates->waiting;
  if (median - least < kClearlyMore) return std::nullopt;
  return Straggler{seen.front()->rank, least, median};
}

}  // namespace hvd
