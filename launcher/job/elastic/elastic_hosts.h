// The hosts of an elastic job: which of those that its source lists are opened, and which are no
// longer used. Pure.
#ifndef HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_HOSTS_H_
#define HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_HOSTS_H_

#include <cstdint>
#include <vector>

#include "launcher/job/elastic/elastic_change.h"
#include "launcher/job/state/job_state.h"
#include "launcher/wire/messages.h"

namespace hvd {

void HandleListing(ElasticChange& change, const HostsListed& listed);
// The host's agent is connected and waits for work.
void HandleFacts(ElasticChange& change, uint32_t host, const AgentFacts& facts);
// Hosts that the source lists, that are not open, and that may be used.
std::vector<HostSlots> HostsToOpen(const ElasticChange& change);
void Open(ElasticChange& change, const std::vector<HostSlots>& listings);
// Hosts that are no longer listed and have no workers left.
std::vector<uint32_t> UnusedHosts(const ElasticChange& change);
void Drop(ElasticChange& change, const std::vector<uint32_t>& hosts);
// Some listed host is not ready yet.
bool HostsConnecting(const ElasticChange& change);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_ELASTIC_ELASTIC_HOSTS_H_
