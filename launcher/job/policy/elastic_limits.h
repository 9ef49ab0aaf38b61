// How far a job may shrink and grow, and what it may lose, by its settings. A job of a fixed size
// is the case min = max without a budget. Pure.
#ifndef HVD_LAUNCHER_JOB_POLICY_ELASTIC_LIMITS_H_
#define HVD_LAUNCHER_JOB_POLICY_ELASTIC_LIMITS_H_

#include <cstdint>
#include <optional>

#include "configs/settings.h"
#include "launcher/job/policy/cooldown.h"
#include "launcher/job/policy/failure_budget.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

struct ElasticLimits {
  bool elastic = false;                        // hosts and ranks may come and go
  uint32_t min_np = 0, np = 0, max_np = 0;     // ranks: min_np <= np <= max_np
  Duration elastic_timeout{};                  // of a wait for slots
  Duration init_timeout{};                     // of a wait in hvd.init() for ranks that have slots
  std::optional<uint32_t> reset_limit = {};    // of re-formings, planned ones too
  std::optional<CooldownRange> cooldown = {};  // of hosts; not said: host_ledger.h
  FailureLimit failures = {};
  uint32_t spares = 0;
  RestartMode restart = RestartMode::kAuto;

  bool operator==(const ElasticLimits&) const = default;
};

// Of a job of fixed size: it has all of its ranks, or ends.
ElasticLimits FixedLimits(uint32_t ranks);
// kInvalidArgument: one sentence that names the options, before anything starts.
Result<ElasticLimits> ElasticLimitsOf(const Settings& settings);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_POLICY_ELASTIC_LIMITS_H_
