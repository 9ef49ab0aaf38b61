#include "runtime/core/request/process_set.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/core/request/request.h"

namespace hvd {
namespace {

// The part of the world formed by `ranks`.
Group GroupOf(const Group& world, int32_t id, std::span<const uint32_t> ranks) {
  Group group;
  group.id = id;
  group.ranks.assign(ranks.begin(), ranks.end());
  const uint32_t own_peer = world.local[world.local_index];
  for (size_t i = 0; i < world.local.size(); ++i) {
    const uint32_t rank = world.ranks[world.local_to_group[i]];
    auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
    if (found == ranks.end() || *found != rank) continue;
    const auto index = static_cast<uint32_t>(found - ranks.begin());
    if (world.local[i] == own_peer) {
      group.index = index;
      group.local_index = group.local_size();
    }
    group.local.push_back(world.local[i]);
    group.local_to_group.push_back(index);
  }
  return group;
}

void IndexPeers(ProcessSet* set, size_t peers) {
  set->index_of_peer.assign(peers, ProcessSet::kNotHere);
  for (uint32_t i = 0; i < set->group.local.size(); ++i) {
    set->index_of_peer[set->group.local[i]] = i;
  }
}

}  // namespace

Group WorldOnOneHost(uint32_t rank, uint32_t size) {
  Group world;
  world.ranks.resize(size);
  std::iota(world.ranks.begin(), world.ranks.end(), 0u);
  world.local = world.local_to_group = world.ranks;
  world.index = world.local_index = rank;
  return world;
}

std::vector<std::vector<uint32_t>> SetsWithin(const std::vector<std::vector<uint32_t>>& sets,
                                              uint32_t size) {
  std::vector<std::vector<uint32_t>> within;
  for (std::vector<uint32_t> set : sets) {
    std::erase_if(set, [&](uint32_t rank) { return rank >= size; });
    std::ranges::sort(set);
    const bool known = std::ranges::find(within, set) != within.end();
    if (!set.empty() && set.size() != size && !known) within.push_back(std::move(set));
  }
  return within;
}

ProcessSetTable::ProcessSetTable(Group world) {
  auto set = std::make_unique<ProcessSet>();
  set->group = std::move(world);
  IndexPeers(set.get(), set->group.local.size());
  sets_.push_back(std::move(set));
}

Status ProcessSetTable::CheckNew(std::span<const uint32_t> ranks) const {
  if (ranks.empty()) return InvalidArgument("a process set needs at least one rank");
  const std::vector<uint32_t>& all = world().group.ranks;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!std::binary_search(all.begin(), all.end(), ranks[i])) {
      return InvalidArgument(Format(
          "a process set of the ranks {}: rank {} does not exist; ranks of this world are 0 to {}",
          RanksText(ranks), static_cast<int32_t>(ranks[i]), all.size() - 1));
    }
    if (i != 0 && ranks[i] == ranks[i - 1]) {
      return InvalidArgument(
          Format("a process set of the ranks {} names rank {} twice", RanksText(ranks), ranks[i]));
    }
  }
  for (const auto& set : sets_) {
    if (set != nullptr && std::ranges::equal(set->group.ranks, ranks)) {
      return InvalidArgument(Format("a process set of the ranks {} exists already, with the id {}",
                                    RanksText(ranks), set->group.id));
    }
  }
  return Status::Ok();
}

ProcessSet& ProcessSetTable::Add(std::span<const uint32_t> ranks) {
  auto place = std::find(sets_.begin(), sets_.end(), nullptr);
  const auto id = static_cast<int32_t>(place - sets_.begin());
  if (place == sets_.end()) place = sets_.insert(place, nullptr);
  auto set = std::make_unique<ProcessSet>();
  const Group& all = world().group;
  set->group = GroupOf(all, id, ranks);
  set->instance = ++added_;
  set->member = std::binary_search(ranks.begin(), ranks.end(), all.ranks[all.index]);
  IndexPeers(set.get(), all.local.size());
  *place = std::move(set);
  return **place;
}

void ProcessSetTable::Remove(ProcessSet* set) {
  std::unique_ptr<ProcessSet>& place = sets_[static_cast<size_t>(set->group.id)];
  if (set->in_flight != 0) removed_.push_back(std::move(place));
  place.reset();
}

void ProcessSetTable::Release(ProcessSet* set) {
  if (--set->in_flight != 0 || removed_.empty()) return;
  std::erase_if(removed_, [set](const auto& removed) { return removed.get() == set; });
}

std::vector<int32_t> ProcessSetTable::Ids() const {
  std::vector<int32_t> ids;
  for (const auto& set : sets_) {
    if (set != nullptr) ids.push_back(set->group.id);
  }
  return ids;
}

}  // namespace hvd
