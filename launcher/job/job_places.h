// Ranks that another launcher starts (mpirun, jsrun): once all hosts are ready it is started, its
// processes give their places to the agents, and when all are taken the ranks are started in them:
// which rank is where, the launcher decides. Until then nothing of the user's runs. Pure.
#ifndef HVD_LAUNCHER_JOB_JOB_PLACES_H_
#define HVD_LAUNCHER_JOB_JOB_PLACES_H_

#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

// All hosts are ready. True: the launcher is not needed, or all places are taken.
bool AllPlacesTaken(JobChange& change);
// True: one more is taken.
bool TakePlaceNews(JobChange& change, const PlaceNews& event);
void TakeLauncherEnd(JobChange& change, const LauncherEnded& event);
// At the deadline. False: it is not that of the launcher.
bool TakeLauncherDeadline(JobChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_PLACES_H_
