// The facts that the driver itself knows about the ranks of its job, for a JobView. Pure.
#ifndef HVD_LAUNCHER_DRIVER_JOB_OUTLINE_H_
#define HVD_LAUNCHER_DRIVER_JOB_OUTLINE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launcher/job/state/job_state.h"
#include "launcher/live/job_view.h"
#include "launcher/process/jobs/driver_status.h"
#include "launcher/stall/verdict/script_verdict.h"

namespace hvd {

// Ranks in their order; of an elastic job those that have not ended. Counters and rates come from
// the agents.
JobView OutlineOf(const JobState& state, const std::string& job_id);

// For `hvdrun ps`: the ranks of the job, not the workers that it ever had, and those that run.
JobCounts CountsOf(const JobState& state);

// The hosts with workers that run; none while the plan may change.
std::vector<uint32_t> HostsAtWork(const JobState& state);

// For ScriptRounds, by worker: those that run or have ended successfully; none while ranks start or
// end.
std::map<uint32_t, ScriptRank> ScriptRanksOf(const JobState& state);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_JOB_OUTLINE_H_
