#include <algorithm>
#include <map>
#include <vector>

#include "timeline/report/report_parts.h"

namespace hvd {
namespace {

using Ranges = std::vector<TimeRange>;

// Sorted, without overlaps.
Ranges United(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const TimeRange& a, const TimeRange& b) { return a.begin_ns < b.begin_ns; });
  Ranges united;
  for (const TimeRange& range : ranges) {
    if (range.begin_ns >= range.end_ns) continue;
    if (!united.empty() && range.begin_ns <= united.back().end_ns) {
      united.back().end_ns = std::max(united.back().end_ns, range.end_ns);
    } else {
      united.push_back(range);
    }
  }
  return united;
}

// The time covered by both; each is sorted and without overlaps.
int64_t Overlap(const Ranges& a, const Ranges& b) {
  int64_t sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t begin = std::max(a[i].begin_ns, b[j].begin_ns);
    const int64_t end = std::min(a[i].end_ns, b[j].end_ns);
    if (begin < end) sum += end - begin;
    if (a[i].end_ns < b[j].end_ns) {
      ++i;
    } else {
      ++j;
    }
  }
  return sum;
}

std::vector<LateMark> MarksIn(const TraceFacts& facts, const TimeRange& range) {
  std::vector<LateMark> marks;
  for (const LateMark& mark : facts.late) {
    if (mark.ns >= range.begin_ns && mark.ns <= range.end_ns) marks.push_back(mark);
  }
  return marks;
}

// While the rank was the last one that had not submitted something.
Ranges HoldingUp(const std::vector<LateMark>& marks, uint32_t rank, const TimeRange& range) {
  Ranges ranges;
  for (const LateMark& mark : marks) {
    if (mark.rank == rank)
      ranges.push_back({std::max(range.begin_ns, mark.ns - mark.late_ns), mark.ns});
  }
  return United(std::move(ranges));
}

// A rank that falls behind at one tensor is late at the next ones, too. It falls behind where its
// delay grows: from one tensor, whichever rank was last for it, to the next.
std::map<uint32_t, int64_t> DelaysOf(const std::vector<LateMark>& marks, uint32_t rank) {
  std::map<uint32_t, int64_t> delays;
  int64_t before = 0;
  for (const LateMark& mark : marks) {
    const bool is_last = mark.rank == rank;
    if (is_last && mark.late_ns > before) delays[mark.tensor] += mark.late_ns - before;
    before = is_last ? mark.late_ns : 0;
  }
  return delays;
}

void AddDelays(const TraceFacts& facts, const std::map<uint32_t, int64_t>& delays,
               StragglerReport* straggler) {
  int64_t in_all = 0, most = 0;
  for (const auto& [tensor, delay] : delays) {
    in_all += delay;
    if (delay <= most) continue;
    most = delay;
    straggler->tensor = facts.tensors[tensor];
  }
  // Those that matter.
  for (const auto& [tensor, delay] : delays) straggler->tensors += delay * 20 >= most;
  if (in_all > 0) straggler->tensor_share = static_cast<double>(most) / static_cast<double>(in_all);
}

}  // namespace

void AddLateness(const TraceFacts& facts, const TimeRange& range, Report* report) {
  const std::vector<LateMark> marks = MarksIn(facts, range);
  if (marks.empty() || range.begin_ns >= range.end_ns) return;
  std::vector<uint64_t> last(facts.ranks.size());
  for (const LateMark& mark : marks) ++last[mark.rank];
  size_t worst = 0;
  for (uint32_t rank = 0; rank < facts.ranks.size(); ++rank) {
    RankReport& of_rank = report->ranks[rank];
    of_rank.last_share = static_cast<double>(last[rank]) / static_cast<double>(marks.size());
    const Ranges holding_up = HoldingUp(marks, rank, range);
    int64_t lost = 0;
    for (uint32_t other = 0; other < facts.ranks.size(); ++other) {
      if (other != rank) lost += Overlap(holding_up, facts.ranks[other].waits);
    }
    of_rank.lost_by_others_ns =
        lost / std::max<int64_t>(1, static_cast<int64_t>(facts.ranks.size()) - 1);
    if (of_rank.lost_by_others_ns > report->ranks[worst].lost_by_others_ns) worst = rank;
  }
  const RankReport& straggling = report->ranks[worst];
  if (straggling.lost_by_others_ns <= 0) return;
  StragglerReport straggler;
  straggler.rank = worst;
  straggler.last_share = straggling.last_share;
  straggler.time_share = static_cast<double>(straggling.lost_by_others_ns) /
                         static_cast<double>(range.end_ns - range.begin_ns);
  straggler.lost_per_step_ns =
      static_cast<int64_t>(straggler.time_share * static_cast<double>(report->median_step_ns));
  AddDelays(facts, DelaysOf(marks, static_cast<uint32_t>(worst)), &straggler);
  report->straggler = straggler;
}

}  // namespace hvd
