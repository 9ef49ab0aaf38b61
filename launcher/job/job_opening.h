// The opening of a job of fixed size: its hosts get ready, the plan becomes final, and the workers
// are started. No user code runs before that. Pure.
#ifndef HVD_LAUNCHER_JOB_JOB_OPENING_H_
#define HVD_LAUNCHER_JOB_JOB_OPENING_H_

#include "launcher/job/state/job_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

void EnterStage(JobChange& change, const HostEntered& event);
void NoteTrouble(JobChange& change, const HostTroubled& event);
void HandleReady(JobChange& change, const AgentIsReady& event);
void HandleProof(JobChange& change, const HostProven& event);
void HandleMeasured(JobChange& change, const RouteMeasured& event);
// What its driver had done before it was killed; events about workers and ranks follow.
void Adopt(JobChange& change, const Adopted& event);
// Does what the state of the hosts calls for, if anything.
void ReviewHosts(JobChange& change);
// Cuts off dismissed hosts that have not gone in time.
void CutDismissed(JobChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_JOB_OPENING_H_
