// Facts about each rank from a trace, without interpretation, which is in report.h. Plain values.
#ifndef HVD_TIMELINE_REPORT_TRACE_FACTS_H_
#define HVD_TIMELINE_REPORT_TRACE_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

// Nanoseconds of a rank up to some moment.
struct TimeSpent {
  int64_t waited = 0;        // its program waited for a result
  int64_t communicated = 0;  // an operation was on its way
  int64_t exposed = 0;       // both
  int64_t negotiated = 0;    // operations were on their way, and no data were moved
};

struct OperationTimes {
  uint32_t tensor = 0;
  int64_t submit_ns = 0;
  int64_t start_ns = -1;  // its data are moved; -1: not seen
  int64_t end_ns = -1;    // -1: not seen
  uint64_t bytes = 0;
  TimeSpent before;  // up to its submission
};

struct TimeRange {
  int64_t begin_ns = 0, end_ns = 0;
};

// From the host of a rank to that of another one.
struct LinkFacts {
  int64_t to = 0;  // number of that rank
  uint64_t bytes = 0;
  int64_t busy_ns = 0;  // bytes were under way
};

struct RankHistory {
  int64_t number = 0;
  std::string label;  // "rank 2 on node1"
  std::string host;
  uint64_t lost = 0;  // records
  int64_t clock_uncertainty_ns = 0;
  std::vector<OperationTimes> operations;  // by the time of their submission
  std::vector<TimeRange> waits;            // one after the other
  std::vector<LinkFacts> links;
  TimeSpent spent;
  int64_t first_ns = 0, last_ns = 0;  // of its events
};

// All members have submitted a tensor; this rank did so last.
struct LateMark {
  int64_t ns = 0;
  int64_t late_ns = 0;  // behind the rank before it
  int64_t first_waited_ns = 0;
  uint32_t rank = 0;  // its place in TraceFacts::ranks
  uint32_t tensor = 0;
};

// The work on data inside of operations, over all ranks.
struct ActivityFacts {
  std::string name;  // "GLOO_ALLREDUCE"
  uint64_t times = 0, bytes = 0;
  int64_t total_ns = 0;
};

struct TraceFacts {
  std::vector<RankHistory> ranks;
  std::vector<std::string> tensors;
  std::vector<LateMark> late;
  std::vector<ActivityFacts> activities;
  uint64_t not_written = 0;  // events that are not in the file
  uint64_t events = 0;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_TRACE_FACTS_H_
