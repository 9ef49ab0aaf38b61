// How many failures an elastic job may have (--max-failures). A planned leave is not a failure and
// is never counted. Pure.
#ifndef HVD_LAUNCHER_JOB_POLICY_FAILURE_BUDGET_H_
#define HVD_LAUNCHER_JOB_POLICY_FAILURE_BUDGET_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

struct FailureLimit {
  uint32_t most = 0;                    // failures allowed
  std::optional<Duration> window = {};  // not said: the whole job

  bool operator==(const FailureLimit&) const = default;
};

// "10", "10/90s", "10/30m", "10/1h", "10/2d"; a TIME without a unit is in seconds.
// kInvalidArgument: one sentence that names --max-failures.
Result<FailureLimit> ParseFailureLimit(std::string_view text);

class FailureBudget {
 public:
  explicit FailureBudget(FailureLimit limit) : limit_(limit) {}

  // Counts a failure. False: the limit is exceeded, and the job is to end. `now` must not decrease
  // between calls.
  bool Spend(TimePoint now);
  // Excludes this much time, in which the job was stopped.
  void Shift(Duration away);
  // "3 of 10 failures within 1 h", "1 of 10 failures".
  std::string Text(TimePoint now) const;

  // All that changes, for the record of a takeover (takeover/job_record.h).
  static void RecordFields(auto& f, auto& m) { f(m.failures_); }

 private:
  // Those that still count.
  uint32_t CountedAt(TimePoint now) const;

  FailureLimit limit_;
  std::deque<TimePoint> failures_;  // never more than one above the limit
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_POLICY_FAILURE_BUDGET_H_
