// The hosts of an elastic job: which of those that its source lists are opened, and which are no
// longer used. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_HOSTS_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_HOSTS_H_

#include <cstdint>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/job_state.h"
#include "launcher/wire/messages.h"

namespace hvd {

void TakeListing(ElasticChange& change, const HostsListed& listed);
// Its agent is connected and waits for work.
void TakeFacts(ElasticChange& change, uint32_t host, const AgentFacts& facts);
void OpenListedHosts(ElasticChange& change);
// Hosts that left the list and have no worker any more are dismissed.
void DropUnusedHosts(ElasticChange& change);
// Some listed host is not ready yet.
bool HostsOnTheirWay(const ElasticChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_HOSTS_H_
