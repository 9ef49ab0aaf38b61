// IntervalLines: summarizes each second of a timeline in a line. Pure.
#ifndef HVD_TIMELINE_REPORT_INTERVAL_LINES_H_
#define HVD_TIMELINE_REPORT_INTERVAL_LINES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "timeline/read/trace_event.h"

namespace hvd {

class IntervalLines {
 public:
  // Lines of the seconds completed by this event; usually "".
  std::string Add(const TraceEvent& event);
  // The line of the incomplete second.
  std::string Finish();

 private:
  struct Late {
    uint64_t times = 0;
    int64_t ns = 0;
  };
  int64_t second_ = 0;  // since the zero of the timeline
  uint64_t operations_ = 0, bytes_ = 0, arrivals_ = 0;
  std::set<int64_t> ranks_;
  std::map<int64_t, Late> late_;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_INTERVAL_LINES_H_
