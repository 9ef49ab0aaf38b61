// Whether the job continues after the end of a worker or the loss of a host. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_LOSSES_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_LOSSES_H_

#include <cstdint>
#include <string>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/job_state.h"

namespace hvd {

// The agent of the host could not be reached, or is gone; `reason` is one sentence without the
// host's name.
void LoseHost(ElasticChange& change, uint32_t host, const std::string& reason);
// The worker could not be started.
void LoseUnstarted(ElasticChange& change, uint32_t worker, const std::string& reason);
// Its process has ended.
void HandleEnd(ElasticChange& change, uint32_t worker);
// Ends the generation at the request of a rank, or of hvdrun.
void EndGeneration(ElasticChange& change, const JobFailure& ending);
// A signal has stopped the rank, of a generation that had to end: it cannot be told, and must not
// touch the memory of the others when it goes on.
void EndStopped(ElasticChange& change, uint32_t worker);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_LOSSES_H_
