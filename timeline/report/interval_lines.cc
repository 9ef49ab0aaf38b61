#include "timeline/report/interval_lines.h"

#include <algorithm>

#include "runtime/base/text/format.h"
#include "timeline/report/quantities.h"

namespace hvd {

std::string IntervalLines::Add(const TraceEvent& event) {
  constexpr int64_t kSecond = 1'000'000'000, kMostLate = int64_t{1} << 50;
  const auto ns = NanosecondsOf(event.ts);
  if (event.phase == 'M' || !ns) return "";
  std::string line;
  if (*ns / kSecond > second_) {
    line = Finish();
    second_ = *ns / kSecond;
  }
  const bool late = event.name == "\"LAST_TO_ARRIVE\"";
  ForEachMember(event.args, [&](std::string_view key, std::string_view value) {
    const int64_t number = std::clamp<int64_t>(IntegerOf(value), 0, kMostLate);
    if (key == "bytes" && !late) {
      ++operations_;
      bytes_ += static_cast<uint64_t>(number);
      ranks_.insert(IntegerOf(event.pid, -1));
    } else if (key == "late_ns" && late) {
      ++arrivals_;
      Late& of_rank = late_[IntegerOf(event.pid, -1)];
      ++of_rank.times;
      of_rank.ns += number;
    }
  });
  return line;
}

std::string IntervalLines::Finish() {
  if (operations_ == 0) return "";
  std::string line =
      Format("{} s: {} of {}, {}", second_, CountText(operations_, "operation", "operations"),
             CountText(ranks_.size(), "rank", "ranks"), BytesText(static_cast<double>(bytes_)));
  const auto worst = std::max_element(late_.begin(), late_.end(), [](const auto& a, const auto& b) {
    return a.second.ns < b.second.ns;
  });
  if (worst != late_.end())
    line += Format("; rank {} was last for {} of {}, late by {} in the mean", worst->first,
                   worst->second.times, CountText(arrivals_, "tensor", "tensors"),
                   TimeText(worst->second.ns / static_cast<int64_t>(worst->second.times)));
  operations_ = bytes_ = arrivals_ = 0;
  ranks_.clear();
  late_.clear();
  return line + "\n";
}

}  // namespace hvd
