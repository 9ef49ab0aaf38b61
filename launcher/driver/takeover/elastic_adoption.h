// How an elastic job goes on from the state that its former hvdrun has left (job_record.h): what
// that may not have sent, and what it may not have heard of. Pure.
#ifndef HVD_LAUNCHER_DRIVER_TAKEOVER_ELASTIC_ADOPTION_H_
#define HVD_LAUNCHER_DRIVER_TAKEOVER_ELASTIC_ADOPTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/job/state/job_state.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

// By host; none of a host that has no agent, or whose agent was not reached.
using HostSnapshots = std::vector<std::optional<HostSnapshot>>;

// Before anything else: hosts whose agents had not got so far that they outlive their hvdrun
// (`outlives`, by host). They are no failures; the next listing of hosts opens them again.
void ForgetHosts(JobState& state, const std::vector<bool>& outlives);

// What the former hvdrun had decided, once more: agents may not have got it, and those that did
// pass over it. A worker that its agent does not have is started.
std::vector<JobAction> UnfinishedActions(const JobState& state, const HostSnapshots& snapshots,
                                         TimePoint now);

// What has happened since, by what the agents know; in an order in which it can have happened.
std::vector<JobEvent> MissedEvents(const JobState& state, const HostSnapshots& snapshots);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_TAKEOVER_ELASTIC_ADOPTION_H_
