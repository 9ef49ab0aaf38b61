// The life of a job as one state machine: events in, actions and a reason out. No descriptors, no
// threads, no clock of its own; the driver (driver.cc) turns the world into events and actions into
// the world.
//
//   opening -> starting -> running -> [stopping] -> finishing -> done
//
// While it is opening, hosts get ready (host_stages.h) and no user code runs. A host that fails
// ends the job once every other host has failed or is ready, at most 3 s later. When all agents are
// connected the plan becomes final (final_plan.h), and hosts that the job does not need are
// dismissed.
//
// One generation follows another: the next begins when the ranks that are to be in it have asked
// for it (membership.h). A job of fixed size has the same members in all of them and ends when a
// rank is lost or fails; an elastic one begins without hosts, learns of them by HostsListed, and
// continues with other ranks. Both end in the same way.
#ifndef HVD_LAUNCHER_JOB_JOB_H_
#define HVD_LAUNCHER_JOB_JOB_H_

#include <optional>

#include "launcher/job/state/job_state.h"
#include "runtime/base/clock.h"

namespace hvd {

Decision Step(JobState& state, const JobEvent& event, TimePoint now);
// When the next Tick is due; nothing while only other events can change the state.
std::optional<TimePoint> NextTick(const JobState& state);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_H_
