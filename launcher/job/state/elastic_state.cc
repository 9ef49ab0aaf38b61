#include "launcher/job/state/elastic_state.h"

namespace hvd {

void ElasticState::TakeSeat(uint32_t host, uint32_t seat) {
  if (hosts.empty()) return;
  const bool was_free = hosts[host].usable() && hosts[host].HasFree(seat);
  hosts[host].taken.insert(seat);
  if (was_free) --host_counts.free_seats;
}

void ElasticState::FreeSeat(uint32_t host, uint32_t seat) {
  if (hosts.empty() || hosts[host].taken.erase(seat) == 0) return;
  if (hosts[host].usable() && hosts[host].HasFree(seat)) ++host_counts.free_seats;
}

std::map<std::pair<std::string, uint16_t>, uint32_t> ElasticState::LiveHosts() const {
  std::map<std::pair<std::string, uint16_t>, uint32_t> live;
  for (uint32_t host = 0; host < hosts.size(); ++host) {
    if (!hosts[host].gone)
      live.emplace(std::pair(hosts[host].listing.host, hosts[host].listing.port), host);
  }
  return live;
}

void ElasticState::CountHosts() {
  host_counts = {};
  for (const ElasticHost& host : hosts) {
    host_counts.unlisted += !host.listed && !host.gone;
    host_counts.free_seats += host.CountFree();
  }
  const auto live = LiveHosts();
  for (const HostSlots& listed : listing) {
    if (!live.contains({listed.host, listed.port})) host_counts.unopened.push_back(listed);
  }
}

void ElasticState::Shift(Duration away) {
  ledger.Shift(away);
  budget.Shift(away);
  time.Shift(away);
  if (restart) restart->kill_at += away;
  started_at += away;
  next_report += away;
  for (std::optional<TimePoint>* time_point :
       {&incomplete_since, &resize_since, &resize_at, &ledger_changes_at, &stop_by, &enough_since,
        &growth_at, &next_overdue, &short_since, &late_since}) {
    if (*time_point) **time_point += away;
  }
}

}  // namespace hvd
