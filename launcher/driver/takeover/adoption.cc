#include "launcher/driver/takeover/adoption.h"

namespace hvd {

Adoption::Adoption(const TakeoverRecord& record) : snapshots_(record.hosts.size()) {
  for (uint32_t host = 0; host < record.hosts.size(); ++host) {
    if (record.hosts[host].has_rank != 0) awaited_.insert(host);
  }
}

void Adoption::Add(uint32_t host, HostSnapshot snapshot) {
  if (awaited_.erase(host) > 0) snapshots_[host] = std::move(snapshot);
}

void Adoption::Keep(uint32_t host, ToDriver message) {
  if (host < snapshots_.size() && snapshots_[host]) later_.emplace_back(host, std::move(message));
}

void Adoption::Lose(uint32_t host, std::string reason) {
  awaited_.erase(host);
  lost_.emplace_back(host, std::move(reason));
}

}  // namespace hvd
