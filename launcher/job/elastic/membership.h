// The hosts and ranks of a job: which hosts are opened, which slots get a worker, which
// workers are in the next generation, when the ranks are notified of a change, what a loss means,
// and when there are too few ranks. Pure.
//
//   elastic_hosts        the hosts that the source lists
//   elastic_seats        slots on which workers are started, and workers that lose their slot
//   elastic_losses       what the end of a worker or host means
//   elastic_restart      scripts that know of no generations
//   elastic_generations  when a generation begins, and with which workers
//   elastic_notice       what ranks are told, so that they act at the same commit
//   elastic_spares       workers that wait for a place
//
// Here: workers that are not needed any more, and too few ranks.
//
// Events change the state only; the consequences are decided here, after each of them, from the
// state alone, so that the order of events does not matter. ReviewMembers asks the functions of the
// other files for plans, which change nothing, decides, and has them act.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_MEMBERSHIP_H_
#define HVD_LAUNCHER_JOB_ELASTIC_MEMBERSHIP_H_

#include <optional>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/job_state.h"
#include "runtime/base/clock.h"

namespace hvd {

// To be called once after every event and at NextMembershipTick. The failure that ends the job, if
// any.
std::optional<JobFailure> ReviewMembers(ElasticChange& change);
// Where nothing was decided, logs which ranks are present and which are needed, if that has
// changed.
void ExplainMembers(ElasticChange& change);
// When ReviewMembers is due without another event.
std::optional<TimePoint> NextMembershipTick(const JobState& state);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_MEMBERSHIP_H_
