#include "launcher/job/elastic/elastic_hosts.h"

#include <algorithm>
#include <utility>

#include "launcher/job/host_records/host_clock.h"
#include "launcher/job/host_records/host_stages.h"

namespace hvd {
void HandleListing(ElasticChange& change, const HostsListed& listed) {
  if (!listed.trouble.empty()) {
    const bool first = !change.elastic.listed_once;
    if (first && listed.hopeless) return change.FailJob(listed.trouble);
    // A source that has failed from the start is asked again until --elastic-timeout.
    if (change.elastic.source_trouble != listed.trouble)
      change.Notify(listed.trouble + (first ? "; it is asked again until --elastic-timeout is over"
                                            : "; the job goes on with the hosts that it has"));
    change.elastic.source_trouble = listed.trouble;
    return;
  }
  change.elastic.source_trouble.clear();
  change.elastic.listed_once = true;
  for (ElasticHost& host : change.elastic.hosts) host.listed = false;
  const auto live = change.elastic.LiveHosts();
  for (const HostSlots& listing : listed.hosts) {
    const auto known = live.find({listing.host, listing.port});
    if (known == live.end()) continue;
    ElasticHost& host = change.elastic.hosts[known->second];
    host.listed = true;
    host.listing = listing;
    if (listing.slots_known) host.slots = listing.slots;
  }
  change.elastic.listing = listed.hosts;
  change.elastic.CountHosts();
  change.state.NoteSlots();
}

namespace {

uint32_t AddHost(ElasticChange& change, const HostSlots& listing) {
  const auto host = static_cast<uint32_t>(change.elastic.hosts.size());
  ElasticHost added;
  added.listing = listing;
  added.slots = listing.slots_known ? listing.slots : 0;
  change.elastic.hosts.push_back(added);
  change.state.plan.hosts.push_back(NamesOf({listing}).front());
  change.state.host_open.push_back(true);
  change.state.dismissed.push_back(false);
  change.state.facts.emplace_back();
  change.state.clocks.push_back(listing.remote ? HostClock() : HostClock::Ours());
  change.state.stages.Add(change.now);
  return host;
}

}  // namespace

std::vector<HostSlots> HostsToOpen(const ElasticChange& change) {
  std::vector<HostSlots> hosts;
  if (change.elastic.any_finished || change.elastic.stop_asked) return hosts;
  for (const HostSlots& listing : change.elastic.host_counts.unopened) {
    const bool twice = std::ranges::any_of(hosts, [&listing](const HostSlots& other) {
      return other.host == listing.host && other.port == listing.port;
    });
    if (twice || !change.elastic.ledger.MayUse(listing.host, change.now)) continue;
    if (listing.slots_known && listing.slots == 0) continue;
    hosts.push_back(listing);
  }
  return hosts;
}

void Open(ElasticChange& change, const std::vector<HostSlots>& listings) {
  if (listings.empty()) return;
  for (const HostSlots& listing : listings) {
    const uint32_t host = AddHost(change, listing);
    change.Do(OpenHost{host, listing});
    change.SetReason("host " + listing.host + " is opened");
  }
  change.elastic.CountHosts();
}

void HandleFacts(ElasticChange& change, uint32_t host, const AgentFacts& facts) {
  ElasticHost& known = change.elastic.hosts[host];
  change.state.stages.Enter(host, HostStage::kReady, change.now);
  change.state.facts[host] = facts;
  size_t& free_seats = change.elastic.host_counts.free_seats;
  free_seats -= known.CountFree();
  known.ready = true;
  known.trouble.clear();
  const uint32_t slots = known.listing.slots_known ? known.slots : facts.slots;
  const bool changes = std::exchange(known.slots, slots) != slots;
  free_seats += known.CountFree();
  if (changes && !known.taken.empty()) change.state.NoteSlots();
}

bool HostsConnecting(const ElasticChange& change) {
  return std::ranges::any_of(change.elastic.hosts, [](const ElasticHost& host) {
    return host.listed && !host.gone && !host.ready;
  });
}

std::vector<uint32_t> UnusedHosts(const ElasticChange& change) {
  std::vector<uint32_t> unused;
  if (change.elastic.host_counts.unlisted == 0) return unused;
  for (uint32_t host = 0; host < change.elastic.hosts.size(); ++host) {
    const ElasticHost& known = change.elastic.hosts[host];
    if (!known.listed && !known.gone && known.taken.empty()) unused.push_back(host);
  }
  return unused;
}

void Drop(ElasticChange& change, const std::vector<uint32_t>& hosts) {
  if (hosts.empty()) return;
  for (uint32_t host : hosts) {
    ElasticHost& known = change.elastic.hosts[host];
    known.gone = true;
    change.state.dismissed[host] = true;
    change.state.dismissed_by = change.now + change.state.options.finish_limit;
    change.Do(DismissHost{host});
    if (!known.ready) change.Do(CutHost{host});
  }
  change.elastic.CountHosts();
}

}  // namespace hvd
