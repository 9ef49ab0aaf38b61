// The life of a job as one state machine: events in, actions and a reason out. No descriptors, no
// threads, no clock of its own; the driver (driver.cc) turns the world into events and actions into
// the world.
//
//   opening -> starting -> running -> [stopping] -> finishing -> done
//
// While it is opening, hosts get ready (host_stages.h) and nothing of the user's runs. The first
// host that fails ends the job, once the other hosts have failed, too, or got ready. When all
// agents are connected the plan becomes final (final_plan.h), and hosts that the job does not need
// are dismissed.
//
// A job of fixed size is one generation after another with the same members: the driver begins
// generation g + 1 when every rank has asked for it, and a rank that is lost or fails ends the job.
// In an elastic job hosts and ranks come and go (membership.h); it begins without hosts, learns of
// them by HostsListed, and ends as the other one does.
#ifndef HVD_LAUNCHER_JOB_JOB_H_
#define HVD_LAUNCHER_JOB_JOB_H_

#include <optional>

#include "launcher/job/state/job_state.h"
#include "runtime/base/clock.h"

namespace hvd {

Decision Step(JobState& state, const JobEvent& event, TimePoint now);
// When a Tick must come; nothing while only other events can change something.
std::optional<TimePoint> NextTick(const JobState& state);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_H_
