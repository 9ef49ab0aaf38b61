// Spares: workers of an elastic job that wait in hvd.init() until a place is free. They hold memory
// while they wait, and the user is told how much. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SPARES_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SPARES_H_

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/wire/messages.h"

namespace hvd {

// Asks for the memory of workers that have become spares.
void NoticeSpares(ElasticChange& change);
void TakeMemory(ElasticChange& change, const MemoryTold& told);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SPARES_H_
