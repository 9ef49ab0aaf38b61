// JobView: the state of a job at one moment, as shown by `hvdrun top` and the metrics. Plain
// values, and pure functions on them.
#ifndef HVD_LAUNCHER_LIVE_JOB_VIEW_H_
#define HVD_LAUNCHER_LIVE_JOB_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/wire/messages.h"

namespace hvd {

// Rates between two samples of a rank.
struct RankRates {
  double operations = 0, bytes = 0, steps = 0;  // per second
  double waiting = 0;                           // share of the time, 0 to 1
  double last = 0;                              // share of the operations, 0 to 1
};

struct RankView {
  uint32_t worker = 0, rank = 0;
  std::string host;
  int32_t pid = 0;
  std::string state;  // "starting", "outside", "computing", "waiting", "stopped", "left", "ended"
  uint64_t operations = 0, bytes = 0, steps = 0, commits = 0, last = 0;
  double waited_seconds = 0;
  std::string collective, last_submitted;  // empty: none yet
  std::optional<RankRates> rates;          // after the second sample
};

// A rank for which the others wait.
struct Straggler {
  uint32_t rank = 0;
  double waits = 0, others_wait = 0;  // shares of the time; others_wait: the median of the others
};

struct JobView {
  std::string job;
  double time = 0;  // seconds since 1970
  uint64_t generation = 0;
  uint32_t size = 0;            // ranks of the job
  std::vector<RankView> ranks;  // by rank
  std::optional<Straggler> straggler;
};

// "computing"
const char* ActivityText(RankActivity activity);

// Copies an agent's counts of a rank into its view.
void Fill(RankView* view, const WorkerCounts& counts);

// Nothing if `elapsed_ns` <= 0 or a count decreased, because another generation began.
std::optional<RankRates> RatesBetween(const WorkerCounts& before, const WorkerCounts& now,
                                      int64_t elapsed_ns);

// The rank that waits least, if the others wait for a clearly larger share of the time.
std::optional<Straggler> FindStraggler(const std::vector<RankView>& ranks);

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_JOB_VIEW_H_
