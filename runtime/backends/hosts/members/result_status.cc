#include "runtime/backends/hosts/members/result_status.h"

#include <algorithm>

#include "runtime/backends/rank_list.h"

namespace hvd {

void Awaited::Write(std::span<const uint32_t> ranks, bool at_work) {
  for (size_t i = 0; i < std::min<size_t>(ranks.size(), kKept); ++i) {
    ranks_[i].store(ranks[i], std::memory_order_relaxed);
  }
  at_work_.store(at_work ? 1 : 0, std::memory_order_relaxed);
  count_.store(static_cast<uint32_t>(ranks.size()), std::memory_order_release);
}

std::string Awaited::Text() const {
  const uint32_t count = count_.load(std::memory_order_acquire);
  if (count == 0) return "for rank 0, which arranges the work of all hosts, to say who is missing";
  bool at_work = false;
  const std::vector<uint32_t> ranks = Ranks(&at_work);
  const std::string hosts = "the host of " + RankList(ranks, count);
  return at_work ? "for its data to cross to " + hosts : "for " + hosts + " to be ready";
}

std::vector<uint32_t> Awaited::Ranks(bool* at_work) const {
  const uint32_t count = count_.load(std::memory_order_acquire);
  std::vector<uint32_t> ranks(std::min(count, kKept));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = ranks_[i].load(std::memory_order_relaxed);
  *at_work = at_work_.load(std::memory_order_relaxed) != 0;
  return ranks;
}

}  // namespace hvd
