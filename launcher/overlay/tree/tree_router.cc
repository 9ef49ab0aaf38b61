#include "launcher/overlay/tree/tree_router.h"

#include <algorithm>

#include "launcher/wire/probe_partners.h"

namespace hvd {
namespace {

constexpr uint32_t kNoNumber = UINT32_MAX;

}  // namespace

void TreeRouter::Form(const Plan& plan, uint32_t radix) {
  if (tree_) return;
  SetHosts(plan);
  radix_ = radix;
  tree_.emplace(count(), radix, HostsOf(plan.Layout(), plan.size()));
}

void TreeRouter::Reform(const Plan& plan) {
  SetHosts(plan);
  tree_.emplace(count(), count(), HostsOf(plan.Layout(), plan.size()));
}

void TreeRouter::UseRanks(const Plan& plan) {
  if (tree_) tree_.emplace(count(), flat() ? count() : radix_, HostsOf(plan.Layout(), plan.size()));
}

void TreeRouter::SetHosts(const Plan& plan) {
  hosts_ = plan.UsedHosts();
  number_of_.assign(plan.hosts.size(), kNoNumber);
  for (uint32_t number = 0; number < count(); ++number) number_of_[hosts_[number]] = number;
}

void TreeRouter::Flatten() { tree_.emplace(count(), count(), HostOfRank(tree_->host_of_rank())); }

bool TreeRouter::Has(uint32_t host) const {
  return host < number_of_.size() && number_of_[host] != kNoNumber;
}

uint32_t TreeRouter::NumberOf(uint32_t host) const { return number_of_[host]; }

std::vector<uint32_t> TreeRouter::ProbePartnersOf(uint32_t host) const {
  if (!Has(host)) return {};
  const uint32_t number = NumberOf(host);
  std::vector<uint32_t> partners = ProbePartners(number, count());
  if (!flat()) {
    const std::vector<uint32_t> neighbours = TreeNeighbours(tree_->PlaceOf(number));
    partners.insert(partners.end(), neighbours.begin(), neighbours.end());
    std::sort(partners.begin(), partners.end());
    partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
  }
  for (uint32_t& partner : partners) partner = hosts_[partner];
  return partners;
}

bool TreeRouter::HasChildren(uint32_t host) const {
  return !tree_->PlaceOf(NumberOf(host)).below.empty();
}

void TreeRouter::SetPlace(uint32_t host, StartJob& start) const {
  if (flat()) return;
  start.tree.host = NumberOf(host);
  start.tree.hosts = count();
  start.tree.radix = tree_->width();
  const TreePlace place = tree_->PlaceOf(start.tree.host);
  if (!place.parent) return;
  auto record = records_.find(hosts_[*place.parent]);
  if (record != records_.end()) start.tree.above = record->second;
}

uint64_t TreeRouter::MostKeysOf(uint32_t host) const {
  return MostKeys(tree_->PlaceOf(NumberOf(host)).block, tree_->host_of_rank());
}

void TreeRouter::ToAll(const ToAgent& message) { tree_->ToAll(message); }

void TreeRouter::ToHost(uint32_t host, const KeyValue& entry) {
  if (entry.generation == 0 || flat()) return send_(host, entry);
  tree_->ToOne(NumberOf(host), entry);
}

void TreeRouter::Flush() {
  if (!tree_) return;
  for (auto& [number, part] : tree_->PopDownward()) send_(hosts_[number], std::move(part));
}

Status TreeRouter::CheckDirect(uint32_t host, const ToDriver& message, bool started) const {
  static const HostOfRank none;
  if (!started || !Has(host)) return CheckSpeaker(message, {}, none);
  const uint32_t number = NumberOf(host);
  return CheckSpeaker(message, {number, number + 1}, tree_->host_of_rank());
}

Result<std::vector<std::pair<uint32_t, ToDriver>>> TreeRouter::Open(uint32_t host,
                                                                    const TreeUp& batch) const {
  if (flat()) return InvalidArgument("its agent sent a message of a tree, but there is none");
  auto messages = tree_->Open(NumberOf(host), batch);
  if (!messages.ok()) return messages.status();
  for (auto& [from, message] : *messages) from = hosts_[from];
  return messages;
}

bool TreeRouter::Cut(uint32_t host, const std::string& reason, TimePoint now, Duration patience) {
  if (flat() || !tree_->Cut(NumberOf(host))) return false;
  lost_[host] = {now + patience, reason};
  return true;
}

TimePoint TreeRouter::NextTick() const {
  TimePoint next = TimePoint::max();
  for (const auto& [host, lost] : lost_) next = std::min(next, lost.due);
  return next;
}

std::vector<std::pair<uint32_t, std::string>> TreeRouter::PopOverdue(TimePoint now) {
  std::vector<std::pair<uint32_t, std::string>> overdue;
  for (auto it = lost_.begin(); it != lost_.end();) {
    if (now < it->second.due) {
      ++it;
      continue;
    }
    overdue.emplace_back(
        it->first, "it lost the host over which messages reach it: " + it->second.reason +
                       "; a --tree-radix that is not less than the number of hosts does without");
    it = lost_.erase(it);
  }
  return overdue;
}

}  // namespace hvd
