// A JobView as text: the table of `hvdrun top`, and one line if there is no terminal. Pure.
#ifndef HVD_LAUNCHER_LIVE_VIEW_TABLE_H_
#define HVD_LAUNCHER_LIVE_VIEW_TABLE_H_

#include <cstddef>
#include <string>

#include "launcher/live/job_view.h"

namespace hvd {

struct TableSize {
  size_t columns = 0, lines = 0;  // 0: no limit
};

// Lines end with '\n'. The last line counts the ranks that do not fit.
std::string ViewTable(const JobView& view, TableSize size, bool colours);

// "4 ranks, 12.1 steps/s, 1.2 k operations/s, 3.4 GB/s, ..." without a line end. Rates are medians
// over the ranks.
std::string ViewSummary(const JobView& view);

// "3.4 G", with three digits.
std::string ScaledText(double value);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_VIEW_TABLE_H_
