// JobPolicy: what a job does when hosts and ranks come, go or fail, and how far it may shrink and
// grow. A job of a fixed size is the case min = max, without discovery and without a budget. Of the
// launcher this alone asks whether a job is elastic; all else reads what happens then. Pure.
#ifndef HVD_LAUNCHER_JOB_POLICY_JOB_POLICY_H_
#define HVD_LAUNCHER_JOB_POLICY_JOB_POLICY_H_

#include <cstdint>
#include <optional>

#include "configs/settings.h"
#include "launcher/job/policy/cooldown.h"
#include "launcher/job/policy/failure_budget.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

struct JobPolicy {
  // Its hosts become known while it runs, and may change. Else all are in its plan, and are opened,
  // compared and proven before a worker starts.
  bool finds_hosts = false;
  // A generation may have other ranks than the one before, so their places are told with each, and
  // a worker that ended is no longer part of the job. Else each rank keeps its place in the plan.
  bool ranks_change = false;
  // The loss of a rank or host does not end it. Else it needs all of its ranks.
  bool outlives_losses = false;
  // Asked to stop, all ranks leave at one commit. Else they are told, and leave if they like
  // (hvd.should_stop()).
  bool stops_at_commit = false;
  // While it ends, ranks that wait for a generation or at a commit still get their answer.
  bool serves_while_ending = true;
  // The user is told for how much of the time the ranks could train.
  bool measures_training = false;

  uint32_t min_np = 0, np = 0, max_np = 0;     // ranks: min_np <= np <= max_np
  Duration elastic_timeout{};                  // of a wait for slots
  Duration init_timeout{};                     // of a wait in hvd.init() for ranks that have slots
  std::optional<uint32_t> reset_limit = {};    // of re-formings, planned ones too
  std::optional<CooldownRange> cooldown = {};  // of hosts; not said: host_ledger.h
  FailureLimit failures = {};
  uint32_t spares = 0;
  RestartMode restart = RestartMode::kAuto;
  int64_t commit_bytes = 0;  // of each host, for commits that outlive their workers

  // Without limits, ranks that keep others waiting are only named to the user.
  bool limits_waits() const { return init_timeout > Duration{}; }
  // Maximum number of workers at a time.
  uint32_t most_workers() const { return max_np + spares; }
  bool operator==(const JobPolicy&) const = default;
};

// Of a job of fixed size: it has all of its ranks, or ends.
JobPolicy FixedPolicy(uint32_t ranks);
// Of an elastic job, without limits.
JobPolicy ElasticPolicy(uint32_t min_np, uint32_t np, uint32_t max_np);
// kInvalidArgument: one sentence that names the options, before anything starts.
Result<JobPolicy> PolicyOf(const Settings& settings);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_POLICY_JOB_POLICY_H_
