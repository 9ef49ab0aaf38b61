// Spares: workers of an elastic job that wait in hvd.init() until a place is free. They hold memory
// while they wait, and the user is told how much. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SPARES_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SPARES_H_

#include <cstdint>
#include <vector>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/wire/messages.h"

namespace hvd {

// Workers that have become spares.
std::vector<uint32_t> NewSpares(const ElasticChange& change);
// Asks for its memory.
void NoteSpare(ElasticChange& change, uint32_t worker);
void HandleMemory(ElasticChange& change, const MemoryReply& reply);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_SPARES_H_
