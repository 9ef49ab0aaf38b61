// Ranks that another launcher starts (mpirun, jsrun): it is started once all hosts are ready. Its
// processes hand their places to the agents; when all places are taken, the ranks are started in
// them. The launcher decides which rank is where. No user code runs before that. Pure.
#ifndef HVD_LAUNCHER_JOB_JOB_PLACES_H_
#define HVD_LAUNCHER_JOB_JOB_PLACES_H_

#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

// Called when all hosts are ready. True: no launcher is needed, or all places are taken.
bool AllPlacesTaken(JobChange& change);
// True: another place is taken.
bool HandlePlaceEvent(JobChange& change, const PlaceEvent& event);
void HandleLauncherEnd(JobChange& change, const LauncherEnded& event);
// Called at the deadline. False: the deadline is not the launcher's.
bool HandleLauncherDeadline(JobChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_PLACES_H_
