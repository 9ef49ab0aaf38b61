// A JobView for people: the table of `hvdrun top`, and one line where there is no terminal. Pure.
#ifndef HVD_LAUNCHER_LIVE_VIEW_TABLE_H_
#define HVD_LAUNCHER_LIVE_VIEW_TABLE_H_

#include <cstddef>
#include <string>

#include "launcher/live/job_view.h"

namespace hvd {

struct TableSize {
  size_t columns = 0, lines = 0;  // 0: no limit
};

// Lines that end with '\n'. Ranks that do not fit are counted in the last line.
std::string ViewTable(const JobView& view, TableSize size, bool colours);

// "4 ranks, 12.1 steps/s, 1.2 k operations/s, 3.4 GB/s, ..." without the end of the line. Rates are
// the medians of the ranks.
std::string ViewSummary(const JobView& view);

// "3.4 G", with three digits.
std::string ScaledText(double value);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_VIEW_TABLE_H_
