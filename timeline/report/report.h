// Report: what limits a job. Plain values, from analysis.h.
#ifndef HVD_TIMELINE_REPORT_REPORT_H_
#define HVD_TIMELINE_REPORT_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hvd {

// Shares are between 0 and 1. Times of a rank are those between its first and its last step that
// count; without steps, of all its events.
struct RankReport {
  int64_t number = 0;
  std::string label, host;
  std::vector<int64_t> step_begin_ns, step_ns;   // each step
  std::vector<double> step_hidden_share;         // of the communication of the step
  int64_t median_step_ns = 0, slow_step_ns = 0;  // the slowest tenth takes longer
  int64_t time_ns = 0;
  double wait_share = 0, communication_share = 0, negotiation_share = 0;
  double hidden_share = 0;        // of the communication: the program does not wait meanwhile
  double last_share = 0;          // of all tensors: this rank was last
  int64_t lost_by_others_ns = 0;  // the others waited for it, each of them
  uint64_t lost_records = 0;
};

struct TensorReport {
  std::string name;
  uint64_t operations = 0, bytes = 0;  // of all ranks
  uint64_t first_place = 0;            // so many names were new before it
  int64_t in_flight_ns = 0;            // of one operation, from submission to end
  int64_t total_ns = 0;                // of all of them, in the rank that has most
  std::vector<int64_t> late_ns;  // for each rank: how late it was, over all operations together
};

// Tensors of one class of size.
struct SizeReport {
  uint64_t least_bytes = 0, most_bytes = 0;
  uint64_t operations = 0, bytes = 0;
  int64_t median_ns = 0;        // in which the data of one are moved
  double bytes_per_second = 0;  // over all
};

struct HostSpeed {
  std::string name;
  size_t ranks = 0;
  int64_t behind_ns = 0;        // median: its results came so long after those of the first host
  double bytes_per_second = 0;  // of large tensors, once every host had announced them
};

// The bytes that one host sent to another one.
struct LinkReport {
  size_t from = 0, to = 0;  // places in Report::hosts
  uint64_t bytes = 0;
  double bytes_per_second = 0;  // while bytes were under way
};

// The work on data inside of operations.
struct ActivityReport {
  std::string name;
  uint64_t times = 0, bytes = 0;  // of all ranks
  int64_t mean_ns = 0, total_ns = 0;
};

struct StragglerReport {
  size_t rank = 0;  // its place in Report::ranks
  double last_share = 0;
  double time_share = 0;  // of the time: each of the others waits for it
  int64_t lost_per_step_ns = 0;
  std::string tensor;       // at which it falls behind
  double tensor_share = 0;  // of its delay
  size_t tensors = 0;       // at which it falls behind at all
};

struct JobLimit {
  double share = 0;  // of the time
  std::string sentence;
};

struct Report {
  std::string path;
  uint64_t events = 0, lost_records = 0, not_written = 0;
  int64_t time_ns = 0;
  size_t steps = 0, tensors_per_step = 0;
  int64_t median_step_ns = 0;
  uint64_t bytes_per_step = 0;
  std::vector<RankReport> ranks;
  std::vector<TensorReport> tensors;  // by time; those at the end are left out
  uint64_t tensors_in_all = 0;
  std::vector<SizeReport> sizes;
  std::vector<ActivityReport> activities;  // those that take longest in all come first
  std::vector<HostSpeed> hosts;            // several only
  std::vector<LinkReport> links;
  std::optional<StragglerReport> straggler;
  std::vector<JobLimit> findings;  // what limits the job, worst first
};

}  // namespace hvd

#endif  // HVD_TIMELINE_REPORT_REPORT_H_
