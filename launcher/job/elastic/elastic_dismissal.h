// Workers that an elastic job does not need any more. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_DISMISSAL_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_DISMISSAL_H_

#include <cstdint>
#include <vector>

#include "launcher/job/elastic/elastic_change.h"

namespace hvd {

// Those whose slot is no longer there and that can go now: ranks at a commit.
std::vector<uint32_t> WorkersToDismiss(const ElasticChange& change);
void Dismiss(ElasticChange& change, uint32_t worker);
// After the first rank that ended with 0 nobody is added or replaced: when no member is left, ranks
// that never got in end, too.
void FinishIfDone(ElasticChange& change);
// Those that outlive their time get SIGKILL.
void KillOverdue(ElasticChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_DISMISSAL_H_
