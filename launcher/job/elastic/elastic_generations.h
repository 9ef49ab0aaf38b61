// When a generation begins, and with which workers. Pure.
//
// A generation forms when every rank that survived the last one waits in hvd.init() and there are
// enough ranks; ranks that are still starting join at a later commit.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_GENERATIONS_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_GENERATIONS_H_

#include <cstdint>
#include <vector>

#include "launcher/job/elastic/elastic_change.h"

namespace hvd {

// The worker waits in hvd.init().
void AddWaiting(ElasticChange& change, uint32_t worker);
// Every rank that could send the state to new ranks is waiting.
bool SurvivorsWait(const ElasticChange& change);
// The members of the generation that can begin now; empty: none can.
std::vector<Candidate> NextMembers(const ElasticChange& change);
void Begin(ElasticChange& change, std::vector<Candidate> members);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_GENERATIONS_H_
