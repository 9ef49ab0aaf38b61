// How an elastic job continues from the state of its previous hvdrun (job_record.h): actions that
// may not have been sent, and events that it may have missed. Pure.
#ifndef HVD_LAUNCHER_DRIVER_TAKEOVER_ELASTIC_ADOPTION_H_
#define HVD_LAUNCHER_DRIVER_TAKEOVER_ELASTIC_ADOPTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/job/state/job_state.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

// By host; none for a host without an agent, or whose agent was not reached.
using HostSnapshots = std::vector<std::optional<HostSnapshot>>;

// Call first: drops hosts whose agents were not yet able to outlive their hvdrun (`outlives`, by
// host). They do not count as failures; the next host list opens them again.
void ForgetHosts(JobState& state, const std::vector<bool>& outlives);

// Repeats the decisions of the previous hvdrun, which agents may not have received; those that did
// ignore them. Starts workers that their agents do not have.
std::vector<JobAction> UnfinishedActions(const JobState& state, const HostSnapshots& snapshots,
                                         TimePoint now);

// The events since then, from the agents' snapshots, in a possible order.
std::vector<JobEvent> MissedEvents(const JobState& state, const HostSnapshots& snapshots);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_TAKEOVER_ELASTIC_ADOPTION_H_
